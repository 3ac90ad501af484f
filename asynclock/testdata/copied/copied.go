// SPDX-License-Identifier: Apache-2.0

// Package copied copies a lease, which go vet has to refuse.
package copied

import "github.com/asynclock/asynclock-go/asynclock"

// Copied returns a copy of a lease.
func Copied(l *asynclock.Lease) any {
	copied := *l
	return &copied
}
