// SPDX-License-Identifier: Apache-2.0

// Package fortests marks stores that are made for tests.
package fortests

// A Store is marked. Its clients warn of forgotten leases, unless an option says otherwise.
type Store interface{ forTests() }

// A Mark makes the type that embeds it a [Store].
type Mark struct{}

func (Mark) forTests() {}
