// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// The stories of this file are about a store that fails for a while. Its waiters: how often they ask
// meanwhile, and how soon they find that it is back. And Close.

// soon is how long a store that has refused may be back before its waiters notice: a quarter of a
// second, and a fifth for the jitter.
const soon = 300 * time.Millisecond

// A waiter that was refused asks again soon, whatever its TTL, and although it has been refused for
// long. After a failover its first request begins the grace.
func TestWaiterFindsSoonThatAStoreIsBack(t *testing.T) {
	for ttl, outage := range map[time.Duration]time.Duration{
		asynclock.DefaultTTL: 4500 * time.Millisecond, 30 * time.Second: 9 * time.Second, time.Hour: 9 * time.Second,
	} {
		for what, n := range map[string]int{"one key": 1, "a hundred keys": 100} {
			scene(t, what+", "+ttl.String(), func(w *world) {
				c := w.client(asynclock.WithTTL(ttl))
				stop := w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Refuse)
				waiters := make([]*pending, n)
				for i := range waiters {
					waiters[i] = w.ask(w.Context(), c, fmt.Sprint("key ", i))
				}
				w.pass(outage)
				stop()
				back := time.Now()
				for _, p := range waiters {
					p.get()
					if late := p.at.Sub(back); late > soon {
						w.Errorf("got the key %v after the store was back, want at most %v", late, soon)
					}
				}
			})
		}
	}
}

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

// A store whose answers are lost may be slow, and more requests would keep it slow.
func TestStoreWhoseAnswersAreLostIsNotHurried(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithTTL(time.Hour))
		w.store.Every(asynclocktest.Acquire.Any, asynclocktest.LoseReply)
		c.LockChan(w.Context(), "key")
		w.pass(9 * time.Second)
		if got := w.calls(asynclocktest.Acquire.Any); got > 10 {
			w.Errorf("got %d requests in 9 seconds, want at most 10: the pauses double up to a heartbeat", got)
		}
	})
}

// However many keys a client waits for, it does not flood a store that refuses.
func TestManyWaitersDoNotFloodAStoreThatRefuses(t *testing.T) {
	for n, most := range map[int]int{400: 600, 4000: 2000} { // a second, with jitter; a heartbeat is 3 s
		scene(t, fmt.Sprint(n, " keys"), func(w *world) {
			c := w.client(asynclock.WithTTL(time.Hour))
			w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Refuse)
			for i := range n {
				c.LockChan(w.Context(), fmt.Sprint("key ", i))
			}
			w.pass(6 * time.Second)
			before := w.calls(asynclocktest.Acquire.Any)
			w.pass(3 * time.Second)
			if got := (w.calls(asynclocktest.Acquire.Any) - before) / 3; got > most {
				w.Errorf("got %d requests a second, want at most %d", got, most)
			}
		})
	}
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
