// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"time"
)

// A Generation is a range of Spring Integration's releases whose tables look alike.
// Two generations on one table steal each other's live locks, since neither moves
// forward what the other looks at.
type Generation int

const (
	// Spring7 is 7.0 and later: EXPIRED_AFTER says when a lock ends.
	Spring7 Generation = iota + 1
	// Spring6 is everything up to 6.5: CREATED_DATE says when it was taken or last
	// renewed, and each reader adds its own TTL. See [WithRepositoryTTL].
	Spring6
)

// String returns the generation as the first digits of its releases.
func (g Generation) String() string {
	switch g {
	case Spring7:
		return "Spring Integration 7.x"
	case Spring6:
		return "Spring Integration 6.x"
	}
	return fmt.Sprintf("Generation(%d)", int(g))
}

// column is the one that says when a lock ends.
func (g Generation) column() string {
	if g == Spring6 {
		return "CREATED_DATE"
	}
	return "EXPIRED_AFTER"
}

// base is what readers add to the column that says when a lock ends.
func (s *springSettings) base() time.Duration {
	if s.generation == Spring6 {
		return s.ttl
	}
	return 0
}
