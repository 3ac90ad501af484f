// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// force takes a key from its holder.
func (w *world) force(c *asynclock.Client, key string) {
	w.Helper()
	if held, err := c.ForceUnlock(w.Context(), key, 0); err != nil || !held {
		w.Fatalf("ForceUnlock: got %v, %v, want the key to have been held", held, err)
	}
	w.pass(time.Millisecond) // the holder asks the store
}

// wantPartLost fails the story unless the lease has ended because of this key.
func (w *world) wantPartLost(m *asynclock.MultiLease, key string, causes ...error) {
	w.Helper()
	err := m.Err()
	var part *asynclock.PartError
	if !errors.As(err, &part) || part.Key != key {
		w.Errorf("got error %v, want a PartError of %q", err, key)
	}
	wantError(w, err, causes...)
	if m.Valid(0) {
		w.Error("a lost lease is valid")
	}
	select {
	case <-m.Done():
	default:
		w.Error("a lost lease is not done")
	}
	if got := context.Cause(m.Context()); !errors.Is(got, err) {
		w.Errorf("cause of the context: got %v, want %v", got, err)
	}
}

// The loss of one part ends the whole at once. The others are not renewed any more, and go to nobody
// before their TTL, because the holder may still be at work.
func TestLockAllEndsWithTheFirstPartThatIsLost(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		m := lockAll(w, ours, []string{"a", "b", "c"})
		w.pass(10 * ttl)
		w.force(theirs, "b")
		w.wantPartLost(m, "b", asynclock.ErrForced, asynclock.ErrLost)
		renewals := w.calls(asynclocktest.Renew.Any)
		start := time.Now()
		w.pass(trusted(ttl) / 2)
		w.wantHeld("a", "c")
		for _, key := range []string{"a", "c"} {
			unlock(w, lock(w, theirs, key))
			if got := time.Since(start); got > ttl+heartbeat {
				w.Errorf("%q was free after %v, want at most the TTL", key, got)
			}
		}
		if got := w.calls(asynclocktest.Renew.From(0)) - renewals; got != 0 {
			w.Errorf("renewals after the loss: got %d, want none", got)
		}
		w.wantPartLost(m, "b", asynclock.ErrForced)
		err := m.Unlock(w.Context())
		wantError(w, err, asynclock.ErrForced)
		w.wantUnused()
	})
}

// Unlock of a lease that was lost gives the other keys back at once.
func TestLockAllUnlocksTheOthersAfterALoss(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		m := lockAll(w, ours, []string{"a", "b", "c"})
		w.force(theirs, "b")
		w.wantHeld("a", "c")
		start := time.Now()
		err := m.Unlock(w.Context())
		wantError(w, err, asynclock.ErrForced)
		wantOp(w, err, "unlock all", "b")
		wantTime(w, "answer", time.Now(), start)
		w.wantUnused()
		w.wantPartLost(m, "b", asynclock.ErrForced)
		if again := m.Unlock(w.Context()); again == nil || again.Error() != err.Error() {
			w.Errorf("Unlock once more: got %v, want %v", again, err)
		}
	})
}

// A lease that is not renewed ends at the earliest deadline, even if nobody runs in time.
func TestLockAllEndsAtTheEarliestDeadline(t *testing.T) {
	story(t, func(w *world) {
		theirs, ours := w.bounded(), w.bounded()
		start := time.Now()
		b := w.ask(w.Context(), theirs, "b").has()
		p := w.askAll(w.Context(), ours, []string{"a", "b"}, asynclock.WithRenewal(false))
		w.pass(ttl / 6) // nothing was renewed yet
		unlock(w, b)
		m := p.has()
		wantTime(w, "deadline", m.Deadline(), start.Add(trusted(ttl)))
		if left := time.Until(m.Deadline()); !m.Valid(left-1) || m.Valid(left) {
			w.Errorf("valid for the time left: got %v, %v; want true, false", m.Valid(left-1), m.Valid(left))
		}
		time.Sleep(time.Until(m.Deadline()))
		w.wantPartLost(m, "a", asynclock.ErrExpired)
	})
}

// A key that is lost while others are waited for is taken again, and with it all that sort after it.
// Its old token is never shown.
func TestLockAllTakesALostKeyAgain(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		d := lock(w, theirs, "d")
		p := w.askAll(w.Context(), ours, []string{"a", "b", "c", "d"})
		old := make(map[string]int64)
		for _, key := range []string{"a", "b", "c"} {
			old[key] = w.inspect(key).Token
		}
		w.force(theirs, "b")
		w.wantHeld("a", "b", "c", "d")
		p.waits()
		unlock(w, d)
		m := p.has()
		if got := m.Tokens(); got["a"] != old["a"] || got["b"] <= old["b"] || got["c"] <= old["c"] {
			w.Errorf("tokens: got %v, want new ones from b on, before %v", got, old)
		}
		w.pass(10 * ttl)
		if err := m.Err(); err != nil {
			w.Error(err)
		}
		unlockAll(w, m)
		w.wantUnused()
	})
}

// If another has the lost key, it is waited for, and no larger key is held meanwhile.
func TestLockAllHoldsNoLargerKeyThanALostOne(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		d := lock(w, theirs, "d")
		p := w.askAll(w.Context(), ours, []string{"a", "b", "c", "d"})
		next := w.ask(w.Context(), theirs, "b")
		w.force(theirs, "b")
		b := next.has()
		w.wantHeld("a", "b", "d")
		if got := w.inspect("d").Waiters; got != 0 {
			w.Errorf("waiters for the last key: got %d, want none", got)
		}
		unlock(w, d)
		p.waits()
		w.wantHeld("a", "b")
		unlock(w, b)
		unlockAll(w, p.has())
		w.wantUnused()
	})
}

// A part that another lease has joined is renewed for that lease.
func TestLockAllRenewsALostPartForThoseWhoJoinedIt(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(asynclock.WithReentry(true)), w.bounded()
		m := lockAll(w, ours, []string{"a", "b", "c"})
		a, err := ours.Lock(m.Context(), "a")
		if err != nil {
			w.Fatal(err)
		}
		w.force(theirs, "b")
		w.pass(ttl / 2)
		late, err := ours.Lock(context.WithoutCancel(m.Context()), "c") // after the loss
		if err != nil {
			w.Fatal(err)
		}
		w.pass(10 * ttl)
		wantValid(w, a)
		wantValid(w, late)
		wantError(w, m.Unlock(w.Context()), asynclock.ErrForced)
		w.pass(10 * ttl)
		w.wantHeld("a", "c")
		unlock(w, a)
		unlock(w, late)
		w.wantUnused()
	})
}
