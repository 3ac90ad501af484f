// SPDX-License-Identifier: Apache-2.0

package springsql

import "fmt"

// A SpringVersion is a range of Spring Integration's releases whose tables look alike.
// Releases of two ranges on one table steal each other's live locks, since neither updates
// the column that the other reads.
type SpringVersion int

const (
	// Spring7 is 7.0 and later: EXPIRED_AFTER says when a lock ends.
	Spring7 SpringVersion = iota + 1
	// Spring6 is everything up to 6.5: CREATED_DATE says when it was taken or last
	// renewed, and each reader adds its own TTL. See [WithRepositoryTTL].
	Spring6
)

// String returns the first digits of the releases.
func (v SpringVersion) String() string {
	switch v {
	case Spring7:
		return "Spring Integration 7.x"
	case Spring6:
		return "Spring Integration 6.x"
	}
	return fmt.Sprintf("SpringVersion(%d)", int(v))
}

// column is the one that says when a lock ends.
func (v SpringVersion) column() string {
	if v == Spring6 {
		return "CREATED_DATE"
	}
	return "EXPIRED_AFTER"
}
