// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// promised makes a client of a store that promises less, or more, than it is asked for. One whose server ends
// sessions does.
func (w *world) promised(promise time.Duration) *asynclock.Client {
	w.Helper()
	return w.clientOf(altered{
		Store:    w.store,
		acquired: func(r *store.AcquireReply) { r.TTL = promise },
		renewed:  func(r *store.RenewReply) { r.TTL = promise },
	})
}

// The TTL that the store promises counts, not the TTL that was requested.
func TestAShorterPromiseBoundsTrust(t *testing.T) {
	story(t, func(w *world) {
		start := time.Now()
		lease := lock(w, w.promised(3*time.Second), "key", asynclock.WithRenewal(false))
		<-lease.Done()
		if got := time.Since(start); got > trusted(3*time.Second) {
			w.Errorf("the lease ended after %v, want it before %v", got, trusted(3*time.Second))
		}
		wantError(w, lease.Unlock(w.Context()), asynclock.ErrExpired)
	})
}

// Renewals come as often as the promise needs them, and each moves the trust
// deadline no further than it says.
func TestAShorterPromiseIsRenewedInTime(t *testing.T) {
	story(t, func(w *world) {
		lease := lock(w, w.promised(3*time.Second), "key")
		for range 30 {
			time.Sleep(time.Second)
			if got := time.Until(lease.Deadline()); lease.Err() != nil || got > trusted(3*time.Second) {
				w.Fatalf("lease: got %v and %v of trust, want it valid for at most %v", lease.Err(), got, trusted(3*time.Second))
			}
		}
		if got := w.calls(asynclocktest.Renew.Any); got < 25 || got > 40 {
			w.Errorf("renewals in 30 s of a promise of 3 s: got %d, want one a second", got)
		}
	})
}

// A promise for longer than was asked gives nothing more.
func TestALongerPromiseGivesNoMore(t *testing.T) {
	story(t, func(w *world) {
		lease := lock(w, w.promised(time.Hour), "key", asynclock.WithRenewal(false))
		if got := time.Until(lease.Deadline()); got > trusted(ttl) {
			w.Errorf("trust: got %v, want at most %v", got, trusted(ttl))
		}
	})
}

// A store that knows of a loss before the next renewal says so, and why.
func TestALossThatTheStoreTells(t *testing.T) {
	for _, c := range []struct{ told, want error }{
		{fmt.Errorf("%w: the session was closed", asynclock.ErrExpired), asynclock.ErrExpired},
		{nil, asynclock.ErrExpired},
		{context.Canceled, asynclock.ErrExpired}, // no cause of a loss
		{asynclock.ErrStolen, asynclock.ErrStolen},
	} {
		scene(t, fmt.Sprint(c.told), func(w *world) {
			lease := lock(w, w.client(), "key")
			owner := w.store.Calls(asynclocktest.Acquire.Any)[0].Owner
			w.store.Tell(0, store.Event{Kind: store.EventLost, Owner: owner, Err: c.told})
			w.wait()
			wantError(w, lease.Err(), c.want)
		})
	}
}
