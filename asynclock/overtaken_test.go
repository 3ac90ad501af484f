// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// The answer to a request may have been decided before what makes the waiter
// ask, and then says nothing of it. So another request follows it. W10, W9.
func TestRequestUnderWayDoesNotAnswerWhatCameAfterIt(t *testing.T) {
	for name, kind := range map[string]store.EventKind{"gap": store.EventResync, "wake": store.EventWake} {
		scene(t, name, func(w *world) {
			const back = 400 * time.Millisecond
			holder, waiter := w.client(), w.client(asynclock.WithTTL(time.Hour))
			held := lock(w, holder, "key")
			w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(0, back))
			w.store.EveryEvent(asynclocktest.Kind(store.EventGrant), asynclocktest.Drop)
			p := w.ask(w.Context(), waiter, "key")
			asked := time.Now()

			w.pass(back / 2) // the store has answered "wait"; the answer is on its way
			unlock(w, held)  // the message of the grant is lost
			w.store.Tell(1, store.Event{Kind: kind, Owner: w.store.Calls(asynclocktest.Acquire.From(1))[0].Owner})
			p.waits()
			unlock(w, p.get())
			wantTime(w, "the waiter has the key", p.at, asked.Add(back))
		})
	}
}

// An error that asking again does not mend leaves nothing in the store.
func TestWaitingThatFailsIsWithdrawn(t *testing.T) {
	story(t, func(w *world) {
		held := lock(w, w.client(), "key")
		p := w.ask(w.Context(), w.client(), "key")
		if got := w.inspect("key").Waiters; got != 1 {
			w.Fatalf("waiters in the store: got %d, want 1", got)
		}
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Fail(asynclock.ErrDenied))
		<-p.done
		wantError(w, p.ended(), asynclock.ErrDenied)
		if got := w.inspect("key").Waiters; got != 0 {
			w.Errorf("waiters in the store after the failure: got %d, want 0", got)
		}
		unlock(w, held)
	})
}

// A renewal that was overtaken by Unlock is nothing to the client's next lease.
func TestRenewalOfAnEarlierLeaseSaysNothingOfTheNext(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		first := lock(w, c, "key")
		// It asks on other terms, and so gets a lease of its own from the store.
		p := w.ask(w.Context(), c, "key", asynclock.WithTTL(2*ttl))
		w.store.Next(asynclocktest.Renew.From(0), asynclocktest.Slow(ttl/10, 0))
		w.pass(ttl/3 + time.Millisecond) // the renewal is on its way, for at most a fifteenth
		unlock(w, first)
		second := p.has()
		w.pass(ttl / 10) // it has come: that owner has lost the key
		wantValid(w, second)
		unlock(w, second)
	})
}
