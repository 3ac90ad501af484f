// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// A short maximum hold is about holding. Waiting, and what one puts up with from
// the store, follow from the TTL as ever. The server of these scenes is 60 ms away
// and back.
func TestMaxHoldShortensNoWaiting(t *testing.T) {
	short := asynclock.WithMaxHold(asynclock.MinTTL)
	far := func(w *world) {
		w.store.Every(asynclocktest.Any, asynclocktest.Slow(30*time.Millisecond, 30*time.Millisecond))
		w.store.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Delay(30*time.Millisecond))
	}
	scene(t, "a free key is taken", func(w *world) {
		far(w)
		l, err := w.client().TryLock(w.Context(), "key", short)
		if err != nil {
			w.Fatal(err)
		}
		unlock(w, l)
	})
	scene(t, "waiters ask no more often", func(w *world) {
		lock(w, w.client(), "key")
		w.ask(w.Context(), w.client(), "key", short)
		const beats = 10
		w.pass(beats * heartbeat)
		if got, most := w.calls(asynclocktest.Acquire.From(1)), beats*10/8+1; got > most {
			w.Errorf("asked %d times in %d heartbeats, want at most %d", got, beats, most)
		}
	})
	scene(t, "waiters are as patient", func(w *world) {
		w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Refuse)
		begun := time.Now()
		_, err := w.client().Lock(w.Context(), "key", short)
		wantError(w, err, asynclock.ErrUnreachable)
		if took := time.Since(begun); took < patience {
			w.Errorf("gave up after %v, want no sooner than after %v", took, patience)
		}
	})
	scene(t, "a grant lasts until it is confirmed", func(w *world) {
		held := lock(w, w.client(), "key")
		far(w)
		var served []string
		turn := func(name string) {
			c := w.client()
			p := w.ask(w.Context(), c, "key", short)
			go func() {
				<-p.done
				served = append(served, name)
				p.lease.UnlockChan(w.Context())
			}()
			w.pass(heartbeat / 3) // its last request is a while ago then, and the next one away
		}
		turn("first")
		turn("second")
		held.UnlockChan(w.Context())
		w.pass(45 * time.Millisecond) // the message is on its way; the second one asks meanwhile
		w.store.Tell(2, store.Event{Kind: store.EventWake, Owner: w.store.Calls(asynclocktest.Acquire.From(2))[0].Owner})
		w.pass(ttl)
		if got := turns(served); got != "first 1, second 1" {
			w.Errorf("served %s; want them in their order", got)
		}
	})
	scene(t, "a message that is lost costs no place", func(w *world) {
		held := lock(w, w.client(), "key")
		p := w.ask(w.Context(), w.client(), "key", short)
		w.store.NextEvent(asynclocktest.Kind(store.EventGrant), asynclocktest.Drop)
		unlock(w, held)
		before := time.Now()
		p.get()
		if took := p.at.Sub(before); took > heartbeat*12/10 {
			w.Errorf("the key came after %v, want at most a heartbeat", took)
		}
	})
}
