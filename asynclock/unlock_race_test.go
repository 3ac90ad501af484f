// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// A release that takes its time may find that the TTL has ended meanwhile. The
// lease was trusted when it was unlocked, so the work was covered and nothing
// was lost.
func TestReleaseThatArrivesAfterTheTTLIsNoLoss(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key", asynclock.WithMaxHold(asynclock.MinTTL))
		w.store.Next(asynclocktest.Release.On("key"), asynclocktest.Slow(callTimeout/2, 0))
		if err := l.Unlock(w.Context()); err != nil {
			w.Errorf("got error %v, want none", err)
		}
		w.wantUnused()
	})
}

// A heartbeat that was under way when the grant message came is answered
// "granted" after a short critical section has ended. What is done about that
// must not look like a loss to the holder, whose release is overtaken by it.
func TestReleaseOvertakenByAWithdrawalIsNoLoss(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(10*time.Millisecond, 20*time.Millisecond))
		for w.calls(asynclocktest.Acquire.From(1)) < 2 {
			w.pass(time.Millisecond)
		}
		unlock(w, held)
		l := p.has() // by the message, before the heartbeat arrives
		w.pass(15 * time.Millisecond)
		w.store.Next(asynclocktest.Release.From(1), asynclocktest.Slow(100*time.Millisecond, 0))
		if err := l.Unlock(w.Context()); err != nil {
			w.Errorf("got error %v, want none", err)
		}
		w.wait()
		w.wantUnused()
	})
}

// That explains a loss only while such a heartbeat is under way.
func TestLossIsToldOnceTheHeartbeatWasAnswered(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(0, 20*time.Millisecond))
		for w.calls(asynclocktest.Acquire.From(1)) < 2 {
			w.pass(time.Millisecond)
		}
		unlock(w, held)
		l := p.has()
		w.pass(50 * time.Millisecond)
		w.store.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
		if _, err := w.session().Force(w.Context(), "key"); err != nil {
			w.Fatal(err)
		}
		wantError(w, l.Unlock(w.Context()), asynclock.ErrLost)
	})
}
