// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// A caller holds a smaller and a larger key, and waits for the largest. When the smaller one is lost, it
// must not wait for that while it holds the larger one: whoever takes the smaller one may want the other.
func TestLockAllIsRefusedWhenALeaseThatItWasMadeUnderEnds(t *testing.T) {
	story(t, func(w *world) {
		gate, ours, theirs := w.bounded(), w.bounded(asynclock.WithReentry(true)), w.bounded()
		largest := lock(w, gate, "c")
		smaller := lock(w, ours, "a")
		larger, err := ours.Lock(smaller.Context(), "b")
		if err != nil {
			w.Fatal(err)
		}
		waiting := w.askAll(larger.Context(), ours, []string{"a", "b", "c"})
		waiting.waits()
		rival := w.askAll(w.Context(), theirs, []string{"a", "b"})
		rival.waits()
		w.force(gate, "a")
		wantError(w, waiting.ended(), asynclock.ErrLockOrder)
		unlock(w, larger)
		unlockAll(w, rival.has())
		unlock(w, largest)
	})
}

// The first try may take until the context ends. Its error is the context's all the same.
func TestLockAllSaysThatItsContextEndedInATry(t *testing.T) {
	story(t, func(w *world) {
		ours := w.client()
		held := lock(w, ours, "a")
		w.store.Every(asynclocktest.Acquire.On("b"), asynclocktest.Hang)
		ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := ours.LockAll(ctx, []string{"a", "b"})
		wantError(w, err, context.DeadlineExceeded, asynclock.ErrHeld)
		_, err = ours.LockAll(w.Context(), []string{"a", "b"}, asynclock.WithWait(100*time.Millisecond))
		wantError(w, err, context.DeadlineExceeded, asynclock.ErrHeld)
		unlock(w, held)
	})
}

func TestTryLockAllNamesTheFirstKeyThatItCouldNotHave(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		held := lock(w, theirs, "a")
		w.store.Every(asynclocktest.Acquire.On("c"), asynclocktest.Fail(asynclock.ErrDenied))
		_, err := ours.TryLockAll(w.Context(), []string{"a", "b", "c"})
		wantError(w, err, asynclock.ErrHeld)
		unlock(w, held)
	})
}

// The next request of the caller must not find the keys still held by itself.
func TestWhatLockAllGivesBackIsFreeWhenItReturns(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		held := lock(w, theirs, "b")
		w.store.Every(asynclocktest.Release.On("a"), asynclocktest.Slow(100*time.Millisecond, 0))
		_, err := ours.TryLockAll(w.Context(), []string{"a", "b"})
		wantError(w, err, asynclock.ErrHeld)
		for _, c := range []*asynclock.Client{ours, theirs} {
			l, err := c.TryLock(w.Context(), "a")
			if err != nil {
				w.Fatalf("TryLock of a key that was given back: got %v", err)
			}
			unlock(w, l)
		}
		unlock(w, held)
	})
}

// But a store that does not confirm the release keeps nobody for long.
func TestLockAllDoesNotWaitLongForWhatItGivesBack(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.bounded()
		lock(w, theirs, "b")
		w.store.Every(asynclocktest.Release.Any, asynclocktest.Hang)
		began := time.Now()
		_, err := ours.TryLockAll(w.Context(), []string{"a", "b"})
		wantError(w, err, asynclock.ErrHeld)
		if took := time.Since(began); took > 10*time.Second {
			w.Errorf("TryLockAll took %v, want at most ten seconds", took)
		}
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		began = time.Now()
		_, err = ours.LockAll(ctx, []string{"a2", "b"})
		wantError(w, err, context.DeadlineExceeded)
		if took := time.Since(began); took > time.Second+100*time.Millisecond {
			w.Errorf("LockAll took %v, want little more than its context's second", took)
		}
	})
}

// The whole has ended, so nobody renews its parts. A lease that joins one of them is renewed.
func TestALeaseThatJoinsAPartOfAnEndedWholeIsRenewed(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(asynclock.WithReentry(true)), w.bounded()
		first := lock(w, ours, "a")
		m, err := ours.LockAll(first.Context(), []string{"a", "b"})
		if err != nil {
			w.Fatal(err)
		}
		unlock(w, first)
		w.force(theirs, "b")
		w.pass(ttl / 2)
		joined, err := ours.Lock(context.WithoutCancel(m.Context()), "a")
		if err != nil {
			w.Fatal(err)
		}
		w.pass(10 * ttl)
		wantValid(w, joined)
		unlock(w, joined)
		m.Unlock(w.Context())
	})
}

// Without renewal, keys that are had early would be about to end when the last one comes.
func TestLockAllWithoutRenewalLasts(t *testing.T) {
	story(t, func(w *world) {
		theirs, ours := w.bounded(), w.bounded()
		held := lock(w, theirs, "b")
		waiting := w.askAll(w.Context(), ours, []string{"a", "b"}, asynclock.WithRenewal(false))
		w.pass(trusted(ttl) - 10*time.Millisecond)
		unlock(w, held)
		m := waiting.has()
		if left := time.Until(m.Deadline()); left < trusted(ttl)/2 {
			w.Errorf("the lease lasts %v, want half of the TTL at least", left)
		}
		w.pass(ttl)
		wantError(w, m.Err(), asynclock.ErrExpired)
	})
}

// The TTL of such a lease is not longer than it is needed.
func TestLockAllWithoutRenewalForAShortTime(t *testing.T) {
	story(t, func(w *world) {
		ours := w.bounded()
		options := []asynclock.LockOption{asynclock.WithMaxHold(time.Second), asynclock.WithRenewal(false)}
		for range 3 {
			unlockAll(w, lockAll(w, ours, []string{"a", "b"}, options...))
			m, err := ours.TryLockAll(w.Context(), []string{"a", "b"}, options...)
			if err != nil {
				w.Fatal(err)
			}
			unlockAll(w, m)
		}
		w.wantCalls(asynclocktest.Acquire.Any, 12)
	})
}
