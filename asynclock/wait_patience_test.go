// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// The stories that follow are about waiters whose store fails all requests:
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

// The stories that follow are about a store that fails for a while. Its waiters: how often they ask
// meanwhile, and how soon they find that it is back. And Close.

// soon is how long a store that has refused may be back before its waiters notice: a quarter of a
// second, and a fifth for the jitter.
const soon = 300 * time.Millisecond

// A waiter in the store's queue finds it as soon, although its heartbeat is longer.
func TestWaiterInTheQueueFindsSoonThatAStoreIsBack(t *testing.T) {
	story(t, func(w *world) {
		holder, c := w.client(), w.client(asynclock.WithTTL(time.Hour))
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), c, "key")
		w.pass(time.Minute)
		stop := w.store.Every(asynclocktest.Acquire.From(1), asynclocktest.Refuse)
		w.pass(9 * time.Second)
		stop()
		before := w.calls(asynclocktest.Acquire.From(1))
		w.pass(soon)
		if got := w.calls(asynclocktest.Acquire.From(1)) - before; got != 1 {
			w.Errorf("the store was asked %d times in the %v after it was back, want once", got, soon)
		}
		p.waits()
		unlock(w, held)
		p.get()
	})
}

// However many keys a client waits for, it does not flood a store that refuses.
func TestManyWaitersDoNotFloodAStoreThatRefuses(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithTTL(time.Hour))
		w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Refuse)
		for i := range 400 {
			c.LockChan(w.Context(), fmt.Sprint("key ", i))
		}
		w.pass(6 * time.Second)
		before := w.calls(asynclocktest.Acquire.Any)
		w.pass(3 * time.Second)
		if got := (w.calls(asynclocktest.Acquire.Any) - before) / 3; got > 600 { // with jitter; a heartbeat is 3 s
			w.Errorf("got %d requests a second, want at most 600", got)
		}
	})
}

// The second that Close gives a store is not the caller's.
func TestCloseOfAStoreThatDoesNotLetGo(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Every(asynclocktest.Close.Any, asynclocktest.Hang)
		p := w.closing(w.Context(), c)
		w.pass(1100 * time.Millisecond)
		err := p.ended()
		wantError(w, err, asynclock.ErrUnreachable)
		if errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("got %v, whose context has not ended", err)
		}
	})
}

type valueKey struct{}

func TestCallsThatShareALimitAreCutShortInTime(t *testing.T) {
	story(t, func(w *world) {
		var mu sync.Mutex
		lasts := make(map[string]time.Duration) // of each key, how long its first release was given
		sees := make(map[string]any)            // of each key, a value of the context of its request
		c := w.clientOf(altered{                // with the default TTL a call may take a second
			Store: w.store,
			acquire: func(ctx context.Context, batch []store.AcquireRequest) error {
				sees[batch[0].Key] = ctx.Value(valueKey{})
				return nil
			},
			release: func(ctx context.Context, batch []store.ReleaseRequest) error {
				key, start := batch[0].Key, time.Now()
				mu.Lock()
				_, again := lasts[key]
				mu.Unlock()
				if again {
					return nil
				}
				<-ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				lasts[key] = time.Since(start)
				return ctx.Err()
			},
		})
		var err error
		leases := make(map[string]*asynclock.Lease)
		for _, key := range []string{"first", "soon after", "much later"} {
			ctx := context.WithValue(context.Background(), valueKey{}, "of "+key)
			leases[key], err = c.Lock(ctx, key)
			if err != nil {
				w.Fatal(err)
			}
			if got, want := sees[key], any("of "+key); got != want {
				w.Errorf("%s: the store sees %v in the context, want %v", key, got, want)
			}
		}
		short := lock(w, c, "short", asynclock.WithTTL(400*time.Millisecond))
		var unlocking sync.WaitGroup
		unlock := func(l *asynclock.Lease) { unlocking.Go(func() { _ = l.Unlock(context.Background()) }) }
		unlock(leases["first"])
		time.Sleep(100 * time.Millisecond)
		unlock(leases["soon after"])
		unlock(short)
		time.Sleep(400 * time.Millisecond)
		unlock(leases["much later"])
		unlocking.Wait()
		for key, limit := range map[string]time.Duration{
			"first": time.Second, "soon after": time.Second, "much later": time.Second, "short": 100 * time.Millisecond,
		} {
			if got := lasts[key]; got > limit || got < limit*7/8 {
				w.Errorf("%s: a silent store got %v, want %v to %v", key, got, limit*7/8, limit)
			}
		}
	})
}
