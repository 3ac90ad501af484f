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
