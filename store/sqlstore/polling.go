// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"maps"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/store"
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
	mu      sync.Mutex
	owners  map[string]waiting
	cleanAt int // how many owners there are when it is cleaned next
}

type waiting struct{ since, asked time.Time }

const (
	// silence is how long an owner is kept that does not ask any more. One whose answer
	// crossed its release, which is no matter of the store's, would stay for ever.
	silence = 2 * slowest * maxIdle
	// firstCleaning is how many owners are kept without a look.
	firstCleaning = 1024
)

// waited is for how long an owner has waited, which begins now if it did not yet.
func (l *waitingList) waited(owner string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	w, known := l.owners[owner]
	if !known {
		w.since = now
		l.cleanLocked(now)
	}
	w.asked = now
	l.owners[owner] = w
	return now.Sub(w.since)
}

// cleanLocked makes room for one more.
func (l *waitingList) cleanLocked(now time.Time) {
	if l.owners == nil {
		l.owners = make(map[string]waiting)
	}
	if len(l.owners) < max(l.cleanAt, firstCleaning) {
		return
	}
	maps.DeleteFunc(l.owners, func(_ string, w waiting) bool { return now.Sub(w.asked) > silence })
	l.cleanAt = 2 * len(l.owners)
}

func (l *waitingList) remove(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.owners, owner)
}

// recheck is how soon a waiter asks again, besides what the core does by itself: by
// its heartbeat, and once the holder's TTL has run out. What remains of that says nothing of
// an unlock, which can come at any time, so it is not asked here. Zero where its request said
// how to tell it.
func (s *session) recheck(q *store.AcquireRequest, rank int, address string) time.Duration {
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
