// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A trouble is a row of failures: requests that were not answered, or too late. It goes on with the
// next attempt, because a new owner id does not make the store any faster.
type trouble struct {
	failures int
	err      error            // of the last one
	since    watchdog.Instant // when the first of these requests was sent
	next     watchdog.Instant // when the next request is due

	// queued: the store has answered since then that we wait, but so late that a grant would have
	// been useless. Nobody's patience ends before the next failure.
	queued bool

	set watchdog.Instant // when the watchdog was last set
	due watchdog.Instant // and for when
}

// noPause is the longest delay of the watchdog that counts as one. After a longer one, the process
// was stopped.
const noPause = 250 * time.Millisecond

// count returns how many failures there were.
func (t *trouble) count() int {
	if t == nil {
		return 0
	}
	return t.failures
}

// slow reports whether the last failure was a grant that came too late.
func (t *trouble) slow() bool { return errors.Is(t.err, ErrTooSlow) }

// patienceEnds returns when w has waited long enough for a store that fails. Each waiter has its
// own patience. It counts from the first failure, or from the waiter's arrival if that was later.
func (t *trouble) patienceEnds(w *waiter) watchdog.Instant {
	return max(t.since, w.since).Add(patience(w.settings.ttl))
}

// tooSlow returns the error of a grant that came after trip, too late for its TTL.
func tooSlow(trip, ttl time.Duration) error {
	return fmt.Errorf("%w: the answer took %v, too long for a TTL of %v", ErrTooSlow, trip.Round(time.Millisecond), ttl)
}

// failedLocked counts the failure of a request. The attempt waits before its next request, and
// longer with each failure in a row, up to longestPause.
func (s *keyState) failedLocked(call *acquireCall, err error, now watchdog.Instant) {
	a := s.attempt
	t := a.trouble
	if t == nil || t.queued && !errors.Is(err, ErrTooSlow) {
		// A process that was stopped finds its request failed, however long ago it sent the request.
		// So no more counts than the request's own time limit.
		t = &trouble{since: max(call.sent, now.Add(-call.timeout)), due: never}
		a.trouble = t
	}
	s.skipPauseLocked(min(t.due, call.sent.Add(call.timeout)), now)
	t.failures++
	t.err, t.queued = err, false
	t.next = now.Add(jitter(backoff.Doubled(50*time.Millisecond, t.failures-1, s.longestPause(err))))
}

// The longest pause after a request that was refused. It delays whoever waits through a failover,
// because the new server's grace begins with the first request. For a client of more than a hundred
// keys it is longer, so that all of them together ask no more than 400 times a second.
const (
	refusedPause       = 250 * time.Millisecond
	refusedPausePerKey = refusedPause / 100
)

// longestPause returns the most that an attempt waits after a failure. A request that was not refused
// may still be in the queue of a slow server, and more of them would keep it slow.
func (s *keyState) longestPause(err error) time.Duration {
	longest := heartbeat(s.settings.ttl)
	if mayTakeEffect(err) {
		return longest
	}
	keys := time.Duration(s.client.inUse.Load())
	return min(longest, max(refusedPause, keys*refusedPausePerKey))
}

// never is later than any time that is due.
const never = watchdog.Instant(math.MaxInt64)

// answeredLocked notes an answer that is no grant. If it came so late that a grant would have been
// useless, it does not end a row of such grants.
func (a *attempt) answeredLocked(call *acquireCall) {
	t := a.trouble
	if t == nil {
		return
	}
	ttl := call.request.TTL
	if t.slow() && tooLate(trustUntil(call.sent, ttl).Sub(watchdog.Refresh()), ttl) {
		t.queued, t.due = true, never
		return
	}
	a.trouble = nil
}

// attemptDueLocked sends the attempt's next request, or fails the waiters whose patience has ended.
func (s *keyState) attemptDueLocked(now watchdog.Instant) {
	t := s.attempt.trouble
	if t == nil || t.queued {
		s.requestAgainLocked()
		return
	}
	s.skipPauseLocked(t.due, now)
	if !s.giveUpLocked(now) {
		return
	}
	if s.attempt.inFlight == 0 && now >= t.next {
		s.requestAgainLocked()
	}
	s.watchTroubleLocked(now)
}

// requestAtLocked has the next request sent at that time.
func (s *keyState) requestAtLocked(at, now watchdog.Instant) {
	t := s.attempt.trouble
	if t == nil || t.queued {
		s.client.watchdog.Set(&s.entry, at)
		return
	}
	t.next = at
	s.watchTroubleLocked(now)
}

// watchTroubleLocked sets the watchdog for the next request, and for the first waiter whose patience
// ends, also while a request is under way.
func (s *keyState) watchTroubleLocked(now watchdog.Instant) {
	t := s.attempt.trouble
	if t == nil || t.queued {
		return
	}
	s.skipPauseLocked(t.due, now)
	t.set, t.due = now, never
	if s.attempt.inFlight == 0 {
		t.due = t.next
	}
	for w := s.waiters.first; w != nil; w = w.behind {
		t.due = min(t.due, t.patienceEnds(w))
	}
	s.client.watchdog.Set(&s.entry, t.due)
}

// joinTroubleLocked is watchTroubleLocked for one more waiter.
func (s *keyState) joinTroubleLocked(w *waiter) {
	if t := s.attempt.trouble; t != nil && !t.queued && t.patienceEnds(w) < t.due {
		s.watchTroubleLocked(w.since)
	}
}

// skipPauseLocked keeps a pause of the process out of everybody's patience. A process that was
// stopped must not fail its waiters the moment it runs again: the store may be well. The process was
// stopped if what was due does not happen before now.
func (s *keyState) skipPauseLocked(due, now watchdog.Instant) {
	t := s.attempt.trouble
	if t.due == never || now.Sub(due) <= noPause {
		return
	}
	pause := now.Sub(t.set)
	t.since = t.since.Add(pause)
	for w := s.waiters.first; w != nil; w = w.behind {
		w.since = min(w.since.Add(pause), now)
	}
	t.set, t.due = now, now
}

// giveUpLocked fails the waiters whose patience has ended. It reports whether the attempt goes on.
func (s *keyState) giveUpLocked(now watchdog.Instant) bool {
	t := s.attempt.trouble
	err := unreachable(t.err)
	failed := 0
	for w := s.waiters.first; w != nil; {
		next := w.behind
		if now >= t.patienceEnds(w) {
			s.waiters.remove(w)
			w.failLocked(err)
			failed++
		}
		w = next
	}
	if failed > 0 {
		s.client.log.Add(slog.LevelWarn, "waiting for a key failed",
			slog.String("key", s.key), slog.Int("waiters", failed), slog.Any("error", err))
	}
	if w := s.waiters.first; w != nil && w.settings.terms == s.settings.terms && !s.attempt.try {
		return true
	}
	s.abandonLocked()
	s.contendAfterLocked(t)
	return false
}

// grantedTooLateLocked gives back a key whose grant took so long that too little trust is left. It
// must not be asked for at once again: nobody else could have the key meanwhile, and the next answer
// would take as long.
func (s *keyState) grantedTooLateLocked(call *acquireCall, err error, now watchdog.Instant) {
	a := s.attempt
	a.settleLocked(err)
	s.failedLocked(call, err, now)
	t := a.trouble
	if a.try {
		s.waiters.pop().failLocked(err)
		s.abandonLocked()
		s.contendAfterLocked(t)
		return
	}
	if !s.giveUpLocked(now) {
		return
	}
	s.abandonLocked()
	s.beginLocked(now)
	s.attempt.trouble, s.attempt.admitted = t, true
	s.watchTroubleLocked(now)
}
