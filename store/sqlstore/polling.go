// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

const (
	// restful: who has waited for long asks again after an eighth of that time, for a lock
	// that was held for so long will as a rule be held for a while longer.
	restful = 8
	// slowest: but within this many idle times.
	slowest = 10
)

// A waitingList knows since when each owner of a session waits.
type waitingList struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// waited is for how long an owner has waited, which begins now if it did not yet.
func (l *waitingList) waited(owner string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since, known := l.since[owner]; known {
		return time.Since(since)
	}
	if l.since == nil {
		l.since = make(map[string]time.Time)
	}
	l.since[owner] = time.Now()
	return 0
}

func (l *waitingList) remove(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.since, owner)
}

// recheck is how soon a waiter asks again, besides what the core does by itself: by
// its heartbeat, and once the holder's TTL has run out. Zero where its request said how
// to tell it.
func (s *session) recheck(q *asynclock.AcquireRequest, rank int, address string) time.Duration {
	if address != "" {
		return 0
	}
	idle := s.store.settings.idle
	wait := max(idle, s.waiting.waited(q.Owner)/restful)
	// Each one ahead has its turn first.
	wait = min(wait+time.Duration(min(rank, slowest))*idle, slowest*idle)
	if s.store.settings.spring == nil && q.GrantTTL > 0 {
		// It may have been granted the key, and has so long to find out.
		wait = min(wait, q.GrantTTL/3)
	}
	return jitter(wait)
}
