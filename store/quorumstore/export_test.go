// SPDX-License-Identifier: Apache-2.0

package quorumstore

import "time"

// Unhurried gives nodes of a busy machine more time before the others go on without them, so that a test of the contract
// is not one of the machine.
func Unhurried(s *Store) *Store {
	s.slack = 20 * time.Second
	return s
}
