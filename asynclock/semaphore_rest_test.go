// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// rest matches releases that keep a part.
func rest(c asynclocktest.Call) bool { return c.Op == asynclocktest.Release && c.Release.Rest != nil }

// renewalsSince returns the weights that renewals have said since a moment.
func (w *world) renewalsSince(at time.Time) (weights []int32) {
	for _, c := range w.store.Calls(asynclocktest.Renew.From(0)) {
		if !c.At.Before(at) {
			weights = append(weights, c.Renew.Share.Weight)
		}
	}
	return weights
}

// A release of a part is repeated until it is answered.
func TestAReleaseOfAPartIsRepeated(t *testing.T) {
	story(t, func(w *world) {
		leases := oneGrant(w, semaphore(w, w.client(), 3), semaphore(w, w.client(), 3))
		w.store.Next(rest, asynclocktest.LoseReply, asynclocktest.Refuse)
		wantError(w, leases[0].Unlock(w.Context()), nil)
		w.wantUsed(2)
		w.wantCalls(rest, 3)
		unlock(w, leases[1])
		unlock(w, leases[2])
		w.wantUnused()
	})
}

// Until the store has confirmed a smaller weight, renewals say the weight from before. A release that is
// never confirmed leaves it to them.
func TestRenewalsSayWhatTheStoreHasConfirmed(t *testing.T) {
	story(t, func(w *world) {
		leases := oneGrant(w, semaphore(w, w.client(), 3), semaphore(w, w.client(), 3))
		stop := w.store.Every(rest, asynclocktest.Refuse)
		start := time.Now()
		answer := leases[0].UnlockChan(w.Context())
		w.pass(ttl)
		for _, weight := range w.renewalsSince(start) {
			if weight != 3 {
				w.Errorf("the weight in a renewal: got %d, want 3", weight)
			}
		}
		wantError(w, <-answer, asynclock.ErrUnreachable)
		w.wantUsed(3)
		stop()
		w.pass(ttl)
		w.wantUsed(2)
		unlock(w, leases[1])
		unlock(w, leases[2])
		w.wait()
		w.wantUnused()
	})
}

// A release of a part that finds nothing tells of a loss. All leases of the grant end.
func TestAReleaseOfAPartFindsALoss(t *testing.T) {
	story(t, func(w *world) {
		leases := oneGrant(w, semaphore(w, w.client(), 3), semaphore(w, w.client(), 3))
		w.store.EveryEvent(asynclocktest.Kind(store.EventForced), asynclocktest.Drop)
		if _, err := w.client().ForceUnlock(w.Context(), "key", 0); err != nil {
			w.Fatal(err)
		}
		wantValid(w, leases[1])
		wantError(w, leases[0].Unlock(w.Context()), asynclock.ErrExpired)
		w.wait()
		wantError(w, leases[1].Err(), asynclock.ErrExpired)
		wantError(w, leases[2].Unlock(w.Context()), asynclock.ErrExpired)
		w.wait()
		w.wantUnused()
	})
}

// A release of a part may come after that of the rest. Then it finds nothing, and nothing was lost.
func TestAReleaseOfAPartThatComesLast(t *testing.T) {
	story(t, func(w *world) {
		leases := oneGrant(w, semaphore(w, w.client(), 3), semaphore(w, w.client(), 3))
		w.store.Next(rest, asynclocktest.Slow(100*time.Millisecond, 0), asynclocktest.Slow(200*time.Millisecond, 0))
		first, second := leases[0].UnlockChan(w.Context()), leases[1].UnlockChan(w.Context())
		w.wait()
		unlock(w, leases[2])
		w.wantUnused()
		wantError(w, <-first, nil)
		wantError(w, <-second, nil)
		w.wantUnused()
	})
}
