// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/internal/failure"
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

	set watchdog.Instant // when the alarm was last set
	due watchdog.Instant // and for when
}

// noPause is the longest delay of an alarm that counts as one. After a longer one, the process was
// stopped.
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

// patienceEnds returns when w has waited long enough for a store that fails. Each waiter has its own
// patience. It counts from the first failure, or from the waiter's arrival if that was later.
func (t *trouble) patienceEnds(w *Waiter) watchdog.Instant {
	return max(t.since, w.Since).Add(Patience(w.Terms.TTL))
}

// failed counts the failure of a request. The attempt waits before its next request, and longer with
// each failure in a row, up to longestPause.
func (s *stake) failed(call *Acquire, err error, st *Step) {
	a := s.attempt
	t := a.trouble
	if t == nil || t.queued && !errors.Is(err, ErrTooSlow) {
		// A process that was stopped finds its request failed, however long ago it sent the request.
		// So no more counts than the request's own time limit.
		t = &trouble{since: max(call.Sent, st.Now.Add(-call.Timeout)), due: never}
		a.trouble = t
	}
	s.skipPause(min(t.due, call.Sent.Add(call.Timeout)), st.Now)
	t.failures++
	t.err, t.queued = err, false
	t.next = st.Now.Add(jitter(backoff.Doubled(50*time.Millisecond, t.failures-1, s.longestPause(err, st))))
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
func (s *stake) longestPause(err error, st *Step) time.Duration {
	longest := heartbeat(s.terms.TTL)
	if failure.MayTakeEffect(err) {
		return longest
	}
	return min(longest, max(refusedPause, time.Duration(st.Keys)*refusedPausePerKey))
}

// never is later than any time that is due.
const never = watchdog.Instant(math.MaxInt64)

// answered notes an answer that is no grant. If it came so late that a grant would have been useless,
// it does not end a row of such grants.
func (a *Attempt) answered(call *Acquire, now watchdog.Instant) {
	t := a.trouble
	if t == nil {
		return
	}
	ttl := call.Request().TTL
	if t.slow() && tooLate(trustUntil(call.Sent, ttl).Sub(now), ttl) {
		t.queued, t.due = true, never
		return
	}
	a.trouble = nil
}

// attemptDue sends the attempt's next request, or fails the waiters whose patience has ended.
func (s *stake) attemptDue(st *Step) {
	t := s.attempt.trouble
	if t == nil || t.queued {
		s.requestAgain(st)
		return
	}
	s.skipPause(t.due, st.Now)
	if !s.giveUp(st) {
		return
	}
	if s.attempt.inFlight == 0 && st.Now >= t.next {
		s.requestAgain(st)
	}
	s.watchTrouble(st.Now)
}

// requestAt has the next request sent at that time.
func (s *stake) requestAt(at, now watchdog.Instant) {
	t := s.attempt.trouble
	if t == nil || t.queued {
		s.attempt.due = at
		return
	}
	t.next = at
	s.watchTrouble(now)
}

// watchTrouble sets the alarm for the next request, and for the first waiter whose patience ends, also
// while a request is under way.
func (s *stake) watchTrouble(now watchdog.Instant) {
	t := s.attempt.trouble
	if t == nil || t.queued {
		return
	}
	s.skipPause(t.due, now)
	t.set, t.due = now, never
	if s.attempt.inFlight == 0 {
		t.due = t.next
	}
	for w := s.key.waiters.first; w != nil; w = w.behind {
		t.due = min(t.due, t.patienceEnds(w))
	}
	s.attempt.due = t.due
}

// shareTrouble is watchTrouble for one more waiter.
func (s *stake) shareTrouble(w *Waiter) {
	if t := s.attempt.trouble; t != nil && !t.queued && t.patienceEnds(w) < t.due {
		s.watchTrouble(w.Since)
	}
}

// skipPause keeps a pause of the process out of everybody's patience. A process that was stopped must
// not fail its waiters the moment it runs again: the store may be well. The process was stopped if
// what was due does not happen before now.
func (s *stake) skipPause(due, now watchdog.Instant) {
	t := s.attempt.trouble
	if t.due == never || now.Sub(due) <= noPause {
		return
	}
	pause := now.Sub(t.set)
	t.since = t.since.Add(pause)
	for w := s.key.waiters.first; w != nil; w = w.behind {
		w.Since = min(w.Since.Add(pause), now)
	}
	t.set, t.due = now, now
}

// giveUp fails the waiters whose patience has ended. It reports whether the attempt goes on.
func (s *stake) giveUp(st *Step) bool {
	t := s.attempt.trouble
	err := failure.Unreachable(t.err)
	failed := 0
	for w := s.key.waiters.first; w != nil; {
		behind := w.behind
		if st.Now >= t.patienceEnds(w) {
			s.key.waiters.remove(w)
			st.fail(w, err)
			failed++
		}
		w = behind
	}
	if failed > 0 {
		st.note(slog.LevelWarn, "waiting for a key failed",
			slog.String("key", s.key.Name), slog.Int("waiters", failed), slog.Any("error", err))
	}
	return s.serves(s.key.waiters.first)
}

// grantedTooLate gives back a key whose grant took so long that too little trust is left. It must not
// be asked for at once again: nobody else could have the key meanwhile, and the next answer would take
// as long.
func (s *stake) grantedTooLate(call *Acquire, err error, st *Step) {
	a := s.attempt
	s.key.refuseTries(func(*Waiter) error { return err }, st)
	s.failed(call, err, st)
	t := a.trouble
	if a.try {
		s.abandon(t, st)
		return
	}
	if !s.giveUp(st) {
		return
	}
	s.abandon(t, st)
	next := s.key.unused()
	next.begin(new(Attempt), t, st.Now)
	next.attempt.unlimited = true
	next.watchTrouble(st.Now)
}
