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
