// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Bounds of the pause between two polls, and its default.
const (
	DefaultPollInterval = 100 * time.Millisecond

	minPollInterval = time.Millisecond
	maxPollInterval = time.Minute
)

// CheckPollInterval refuses pauses that are too short or too long.
func CheckPollInterval(interval time.Duration) error {
	if interval < minPollInterval || interval > maxPollInterval {
		return fmt.Errorf("%w: poll interval %v, %v to %v are allowed", store.ErrInvalidOption, interval, minPollInterval, maxPollInterval)
	}
	return nil
}

const (
	// pollBackoff: the longer a waiter has waited, the less often it polls: every eighth of
	// the time waited, but at least every maxPolls intervals.
	pollBackoff = 8
	maxPolls    = 10
)

// Waiters are the owners of a session that poll, and the time since when each of them has
// waited.
type Waiters struct {
	interval time.Duration // the pause between two polls

	mu      sync.Mutex
	owners  map[string]waiting
	cleanAt int // how many owners there are when it is cleaned next
}

type waiting struct{ since, asked time.Time }

const (
	// silence is how long an owner is kept that no longer polls. An answer may cross its
	// owner's release, which a store does not prevent. Such an owner would otherwise be kept
	// for ever.
	silence = 2 * maxPolls * maxPollInterval
	// firstCleaning is the number of owners below which nothing is cleaned.
	firstCleaning = 1024
)

// waited returns how long an owner has waited. An unknown owner begins to wait now.
func (w *Waiters) waited(owner string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	one, known := w.owners[owner]
	if !known {
		one.since = now
		w.cleanLocked(now)
	}
	one.asked = now
	w.owners[owner] = one
	return now.Sub(one.since)
}

// cleanLocked makes room for one more owner.
func (w *Waiters) cleanLocked(now time.Time) {
	if w.owners == nil {
		w.owners = make(map[string]waiting)
	}
	if len(w.owners) < max(w.cleanAt, firstCleaning) {
		return
	}
	maps.DeleteFunc(w.owners, func(_ string, one waiting) bool { return now.Sub(one.asked) > silence })
	w.cleanAt = 2 * len(w.owners)
}

// Forget removes an owner that no longer waits.
func (w *Waiters) Forget(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.owners, owner)
}

// NextPoll returns how soon a waiter of a rank polls again. The core polls as well: by the
// waiter's heartbeat, and once the holder's TTL has run out. The remaining TTL plays no part
// here, because an unlock can come at any time. A positive most bounds the pause.
func (w *Waiters) NextPoll(owner string, rank int, most time.Duration) time.Duration {
	wait := max(w.interval, w.waited(owner)/pollBackoff)
	// Each waiter ahead has its turn first.
	wait = min(wait+time.Duration(min(rank, maxPolls))*w.interval, maxPolls*w.interval)
	if most > 0 {
		wait = min(wait, most)
	}
	return Jitter(wait)
}
