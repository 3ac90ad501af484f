// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// recheck is how soon a waiter asks again, besides what the core does by itself: by
// its heartbeat, and once the holder's TTL has run out. Zero where its request said how
// to tell it.
func (s *session) recheck(q *asynclock.AcquireRequest, address string) time.Duration {
	if address != "" {
		return 0
	}
	wait := s.store.settings.idle
	if s.store.settings.spring == nil && q.GrantTTL > 0 {
		// It may have been granted the key, and has so long to find out.
		wait = min(wait, q.GrantTTL/3)
	}
	return jitter(wait)
}
