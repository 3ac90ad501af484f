// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// The stories of this file are about answers that grant the key so late that
// too little of its TTL is left: W3.

// A lease that is held for hold at most has a TTL of 130 ms. Answers that take
// a trip of 95 ms come too late for it.
const (
	trip = 95 * time.Millisecond
	hold = 100 * time.Millisecond
)

// stoodStill is a request whose process stands still before it reads the answer.
// A process that stands still has no timeouts.
func stoodStill(d time.Duration) asynclocktest.Fault {
	return func(_ context.Context, carry func()) error {
		carry()
		time.Sleep(d)
		return nil
	}
}

// wantEnd waits until an acquisition fails.
func (p *pending) wantEnd(targets ...error) {
	p.w.Helper()
	<-p.done
	wantError(p.w, p.err, targets...)
}

// A message that is too old to be believed still makes the waiter ask. If the
// answer comes too late as well, the key is given back.
func TestLateMessageAndLateAnswerGiveTheKeyBack(t *testing.T) {
	story(t, func(w *world) {
		holder, c, other := w.client(), w.client(asynclock.WithMaxHold(hold)), w.client()
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), c, "key")
		w.pass(time.Second)
		before := w.calls(asynclocktest.Acquire.From(1))
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(trip/2, trip/2))
		q := w.ask(w.Context(), other, "key")
		unlock(w, held)
		w.pass(trip - time.Millisecond)
		q.waits()
		w.pass(time.Millisecond)
		p.waits()
		if got := w.calls(asynclocktest.Acquire.From(1)) - before; got != 1 {
			w.Errorf("asked the store %d times after the message, want once", got)
		}
		unlock(w, q.has())
		unlock(w, p.get())
		w.pass(time.Second)
		w.wantUnused()
	})
}

// Those behind such a TryLock wait on.
func TestLockBehindATryLockWhoseGrantCameTooLate(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Acquire.Any, stoodStill(ttl))
		tried := w.try(w.Context(), c)
		p := w.ask(w.Context(), c, "key")
		<-tried.done
		wantError(w, tried.err, asynclock.ErrTooSlow)
		unlock(w, p.get())
		w.wantUnused()
	})
}
