// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// The stories of this file are about waiters whose store fails all requests:
// when they give up.

// wantAround fails the test unless got is want, give or take the microseconds
// that a busy machine's clocks may say it has slept.
func wantAround(tb testing.TB, what string, got, want time.Time) {
	tb.Helper()
	if got.Sub(want).Abs() > time.Millisecond {
		tb.Errorf("%s: got %v, want %v", what, since(got), since(want))
	}
}

// A waiter of another client that was told to wait gives up in the same time
// after the first request that failed.
func TestPatienceCountsFromTheFirstRequestThatFails(t *testing.T) {
	story(t, func(w *world) {
		lock(w, w.client(), "key")
		p := w.ask(w.Context(), w.client(), "key")
		w.pass(time.Minute)
		before := w.calls(asynclocktest.Acquire.From(1))
		w.store.Every(asynclocktest.Acquire.From(1), asynclocktest.Hang)
		p.wantEnd(asynclock.ErrUnreachable)
		failed := w.store.Calls(asynclocktest.Acquire.From(1))[before]
		wantAround(w, "end of the wait", p.at, failed.At.Add(patience))
	})
}

// after returns a channel that is closed after d.
func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}

// A process that is stopped in the middle of an outage has not waited meanwhile.
func TestPauseInAnOutageIsSkipped(t *testing.T) {
	scene(t, "between two requests", func(w *world) {
		c, brake := w.braked()
		held := lock(w, w.client(), "key")
		p := w.ask(w.Context(), c, "key")
		w.pass(time.Hour)
		stop := w.store.Every(asynclocktest.Acquire.On("key"), asynclocktest.Refuse)
		w.pass(2 * heartbeat)
		goOn := brake.pull(w)
		w.pass(time.Hour)
		stop()
		goOn()
		w.wait()
		unlock(w, held)
		unlock(w, p.get())
	})
	scene(t, "with a request under way", func(w *world) {
		c, brake := w.braked()
		w.store.Next(asynclocktest.Acquire.On("key"), asynclocktest.Refuse,
			asynclocktest.Stuck(after(patience-100*time.Millisecond), asynclocktest.Refuse),
			asynclocktest.Slow(callTimeout/2, 0))
		p := w.ask(w.Context(), c, "key")
		w.pass(100 * time.Millisecond)
		goOn := brake.pull(w)
		w.pass(patience - 200*time.Millisecond)
		goOn()
		unlock(w, p.get())
	})
}

// A future that does not wait leaves an attempt that does not wait. When its patience ends, the next
// waiter goes on with that attempt, and is refused although it waits.
func TestCallerThatWaitsIsNotRefused(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		l := lock(w, c, "key")
		theirs := w.ask(w.Context(), other, "key")
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		w.ask(ctx, c, "key", asynclock.WithTTL(14*time.Second))
		c.LockChan(context.WithoutCancel(l.Context()), "key", asynclock.WithWait(0))
		unlock(w, l)
		theirs.has()
		heal := w.store.Every(asynclocktest.Acquire.From(0), asynclocktest.Hang)
		for w.calls(asynclocktest.Acquire.From(0)) < 4 {
			w.pass(10 * time.Millisecond)
		}
		waiter := w.ask(w.Context(), c, "key")
		w.pass(1500 * time.Millisecond)
		heal()
		w.store.Next(asynclocktest.Acquire.From(0), asynclocktest.Slow(0, 2500*time.Millisecond))
		cancel()
		w.pass(3 * time.Second) // less than its patience
		select {
		case <-waiter.done:
			w.Errorf("Lock without a bound, before its patience ends: got %v, want it to wait", waiter.err)
		default:
		}
	})
}

// Waiters that leave one by one do not make an attempt ask a store in trouble more often.
func TestWaitersThatLeaveDoNotHurryAStoreInTrouble(t *testing.T) {
	story(t, func(w *world) {
		holder, c := w.client(), w.client()
		lock(w, holder, "key")
		for i := range 2000 {
			ctx, cancel := context.WithCancel(w.Context())
			time.AfterFunc(time.Second+time.Duration(i)*time.Millisecond, cancel)
			c.LockChan(ctx, "key")
		}
		w.wait()
		w.store.Every(asynclocktest.Acquire.On("key"), asynclocktest.Refuse)
		before := w.calls(asynclocktest.Acquire.On("key"))
		w.pass(3 * time.Second)
		if got := w.calls(asynclocktest.Acquire.On("key")) - before; got > 20 {
			w.Errorf("got %d requests in three seconds, want at most 20, as with waiters that stay", got)
		}
	})
}
