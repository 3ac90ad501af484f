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

// grantedDuringAHeartbeat returns a lease that the second client was granted by
// message while its heartbeat was under way, which takes so long there and back.
func (w *world) grantedDuringAHeartbeat(there, back time.Duration, options ...asynclock.LockOption) *asynclock.Lease {
	w.Helper()
	held := lock(w, w.client(), "key")
	p := w.ask(w.Context(), w.client(), "key", options...)
	w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(there, back))
	for w.calls(asynclocktest.Acquire.From(1)) < 2 {
		w.pass(time.Millisecond)
	}
	unlock(w, held)
	return p.has()
}

// A heartbeat that was under way when the grant message came is answered
// "granted" after a short critical section has ended. That is no reason to
// withdraw: the release that is on its way says more.
func TestHeartbeatAnsweredAfterTheUnlockUndoesNoMinHold(t *testing.T) {
	story(t, func(w *world) {
		l := w.grantedDuringAHeartbeat(200*time.Millisecond, 300*time.Millisecond, asynclock.WithMinHold(time.Hour))
		w.pass(250 * time.Millisecond)
		w.store.Next(asynclocktest.Release.From(1), asynclocktest.Slow(400*time.Millisecond, 0))
		unlock(w, l)
		w.pass(time.Second)
		_, err := w.client().TryLock(w.Context(), "key")
		wantError(w, err, asynclock.ErrHeld)
	})
}

// Nor does it free the key of a lease that was lost: its holder may be at work.
func TestHeartbeatAnsweredAfterALossFreesNothing(t *testing.T) {
	story(t, func(w *world) {
		w.store.Every(asynclocktest.Renew.From(1), asynclocktest.Refuse)
		held := lock(w, w.client(), "key")
		p := w.ask(w.Context(), w.client(), "key")
		// The first heartbeat is lost, so that the next one has the time to be slow.
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Hang, asynclocktest.Slow(callTimeout/10, callTimeout*9/5))
		for w.calls(asynclocktest.Acquire.From(1)) < 3 {
			w.pass(time.Millisecond)
		}
		unlock(w, held)
		l := p.has()
		<-l.Done()
		before := w.calls(asynclocktest.Release.From(1))
		w.pass(grantTTL)
		if got := w.calls(asynclocktest.Release.From(1)) - before; got != 0 {
			w.Errorf("the key was given back %d times before its holder had unlocked, want never", got)
		}
	})
}

// So a release that finds nothing is a loss, also while such a heartbeat is under way.
func TestLossIsToldDuringAHeartbeat(t *testing.T) {
	story(t, func(w *world) {
		l := w.grantedDuringAHeartbeat(0, 200*time.Millisecond)
		w.store.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
		if _, err := w.session().Force(w.Context(), "key", 0); err != nil {
			w.Fatal(err)
		}
		wantError(w, l.Unlock(w.Context()), asynclock.ErrLost)
	})
}
