// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// While a downgrade is under way, the writer's context is that of no lease.
func TestNobodyJoinsALeaseThatIsBeingDowngraded(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(asynclock.WithReentry(true)), w.client()
		writer := lock(w, ours, "key")
		inner := context.WithoutCancel(writer.Context())
		w.store.Every(asynclocktest.Release.From(0), asynclocktest.Slow(0, oneWay))
		downgraded := make(chan *asynclock.Lease, 1)
		go func() {
			reader, err := writer.Downgrade(w.Context())
			if err != nil {
				w.Error(err)
			}
			downgraded <- reader
		}()
		time.Sleep(oneWay / 2) // the store has done it
		w.wait()
		elsewhere := rlock(w, theirs, "key")
		joined := w.ask(inner, ours, "key")
		w.pass(time.Second)
		reader := <-downgraded
		select {
		case <-joined.done:
			if joined.err == nil && joined.lease.Valid(0) && elsewhere.Valid(0) {
				w.Errorf("a lease of mode %v lasts beside a reader elsewhere", joined.lease.Mode())
				unlock(w, joined.lease)
				w.wait()
				func() {
					defer func() {
						if r := recover(); r != nil {
							w.Errorf("Valid of the reader's lease panics: %v", r)
						}
					}()
					if !reader.Valid(0) {
						w.Error("the unlock of that lease has ended the reader's")
					}
				}()
			}
		default:
		}
	})
}

// The grant's message overtakes the answer to the heartbeat, which comes after the downgrade.
func TestAnAnswerFromBeforeADowngradeIsNoLoss(t *testing.T) {
	story(t, func(w *world) {
		theirs, ours := w.client(), w.client()
		held := lock(w, theirs, "key")
		writer := w.ask(w.Context(), ours, "key")
		n := w.calls(asynclocktest.Acquire.From(1))
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(100*time.Millisecond, 500*time.Millisecond))
		for w.calls(asynclocktest.Acquire.From(1)) == n {
			w.pass(10 * time.Millisecond)
		}
		unlock(w, held) // the heartbeat arrives after that
		l := writer.has()
		w.pass(200 * time.Millisecond) // it has arrived; its answer is under way
		reader := downgrade(w, l)
		w.pass(time.Second)
		wantValid(w, reader)
	})
}

// A downgrade that is answered in the last moment admits nobody to what is about to end.
func TestADowngradeInTheLastMomentAdmitsNobodyElse(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithRenewal(true))
		writer := lock(w, c, "key")
		w.store.Every(asynclocktest.Renew.Any, asynclocktest.Refuse)
		w.pass(trusted(ttl) - 500*time.Millisecond)
		local := w.askBy(w.Context(), c.RLock, "key")
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Slow(0, 490*time.Millisecond))
		downgrade(w, writer)
		if l := local.has(); !l.Valid(50 * time.Millisecond) {
			w.Errorf("a waiter was given a lease that is trusted for less than 50 ms of %v", ttl)
		}
	})
}

// The maximum hold of the writer ends while Downgrade is under way. The key is given back.
func TestMaximumHoldEndsDuringDowngrade(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		writer := lock(w, c, "key", asynclock.WithMaxHold(10*time.Second), asynclock.WithTTL(time.Minute))
		w.pass(9900 * time.Millisecond)
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Slow(0, 200*time.Millisecond))
		_, err := writer.Downgrade(w.Context())
		if err == nil {
			return
		}
		w.wait()
		if info := w.inspect("key"); info.Held {
			w.Errorf("Downgrade failed (%v), and the key is still held for %v in mode %v", err, info.Remaining, info.Mode)
		}
	})
}

// Downgrade says how the lease was lost meanwhile.
func TestForceDuringDowngrade(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		writer := lock(w, ours, "key")
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Slow(100*time.Millisecond, 0))
		go func() {
			time.Sleep(50 * time.Millisecond)
			_, _ = theirs.ForceUnlock(context.Background(), "key", 0)
		}()
		_, err := writer.Downgrade(w.Context())
		wantError(w, err, asynclock.ErrForced)
	})
}

// The reader asks at once, although its client is told of waiters already.
func TestForceAfterADowngradeThatIsNotAnswered(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		writer := claim(w, ours.LockChan(w.Context(), "key"))
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Slow(0, 100*time.Millisecond))
		go func() {
			time.Sleep(50 * time.Millisecond)
			_, _ = theirs.ForceUnlock(context.Background(), "key", 0)
		}()
		reader := downgrade(w, writer)
		w.pass(time.Millisecond)
		wantLost(w, reader, asynclock.ErrForced)
	})
}

// A downgrade fails. The local waiters queue whatever their limit is, because they were admitted before.
func TestWaitersAfterAFailedDowngradeAreNotTurnedAway(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		writer := lock(w, ours, "key")
		local := w.ask(w.Context(), ours, "key", asynclock.WithQueueLimit(1))
		w.ask(w.Context(), theirs, "key")
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Fail(asynclock.ErrDenied))
		_, err := writer.Downgrade(w.Context())
		wantError(w, err, asynclock.ErrDenied)
		w.pass(time.Second)
		select {
		case <-local.done:
			if local.err != nil {
				w.Errorf("a local waiter failed: %v", local.err)
			}
		default:
		}
	})
}

// Close ends while Downgrade is under way.
func TestCloseDuringDowngrade(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		writer := lock(w, c, "key")
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Slow(0, 900*time.Millisecond))
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			_ = c.Close(ctx)
		}()
		_, err := writer.Downgrade(w.Context())
		wantError(w, err, asynclock.ErrClosed)
	})
}

// A renewal is under way when Downgrade is answered. The tenure opens all the same.
func TestARenewalUnderWayAtADowngradeDelaysNobody(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		writer := lock(w, c, "key")
		w.store.Next(asynclocktest.Renew.Any, asynclocktest.Slow(0, 300*time.Millisecond))
		for w.calls(asynclocktest.Renew.Any) == 0 {
			w.pass(10 * time.Millisecond)
		}
		downgrade(w, writer)
		w.pass(3 * time.Second)
		before := w.calls(asynclocktest.Acquire.Any)
		rlock(w, c, "key")
		if n := w.calls(asynclocktest.Acquire.Any) - before; n != 0 {
			w.Errorf("a reader three seconds after the downgrade: got %d requests, want none", n)
		}
	})
}

// The notification of a writer is lost before a downgrade. The first renewal after it tells of the writer.
func TestADowngradeTellsOfAWriterWhoseNotificationWasLost(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		writer := lock(w, ours, "key")
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Slow(0, 50*time.Millisecond))
		w.store.NextEvent(asynclocktest.Kind(store.EventQueued), asynclocktest.Drop)
		other := w.ask(w.Context(), theirs, "key")
		r := downgrade(w, writer)
		w.pass(time.Second)
		late := w.askBy(w.Context(), ours.RLock, "key")
		late.waits()
		unlock(w, r)
		unlock(w, other.has())
		unlock(w, late.has())
	})
}

// The maximum hold counts from the writer's claim.
func TestADowngradeKeepsTheMaximumHold(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		writer := lock(w, c, "key", asynclock.WithMaxHold(time.Second))
		w.pass(900 * time.Millisecond)
		reader := downgrade(w, writer)
		w.pass(50 * time.Millisecond)
		wantValid(w, reader)
		w.pass(50 * time.Millisecond)
		wantLost(w, reader, asynclock.ErrMaxHold)
	})
}

// A store that counts a forgotten holding as held has no numbers for a reader. Nothing of it goes on.
func TestADowngradeWithoutANumberIsALoss(t *testing.T) {
	story(t, func(w *world) {
		c := w.clientOf(altered{Store: w.store, released: func(r *store.ReleaseReply) { r.Grant = store.Grant{} }})
		_, err := lock(w, c, "key").Downgrade(w.Context())
		wantError(w, err, asynclock.ErrLost)
	})
}
