// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// While messages don't come through, or may have been lost, nothing is retained.
func TestNothingIsRetainedUnheard(t *testing.T) {
	for name, kind := range map[string]store.EventKind{"deaf": store.EventDisconnected, "gap": store.EventResync} {
		silence := store.Event{Kind: kind}
		scene(t, name+", while it is retained", func(w *world) {
			w.retained(w.retainer())
			w.store.Tell(0, silence)
			w.wait()
			w.wantUnused()
		})
		scene(t, name+", while it is held", func(w *world) {
			c := w.retainer()
			l := lock(w, c, "key")
			w.store.Tell(0, silence)
			unlock(w, l)
			w.wantUnused()
			w.retained(c)
		})
		scene(t, name+", while it is asked for", func(w *world) {
			c := w.retainer()
			w.store.Next(asynclocktest.Acquire.On("key"), asynclocktest.Slow(time.Millisecond, time.Millisecond))
			p := w.ask(w.Context(), c, "key")
			w.store.Tell(0, silence)
			unlock(w, p.get())
			w.wait()
			w.wantUnused()
		})
	}
}

// Silence in one lane is no reason to give back the keys of another.
func TestSilenceMayBeOfOneLane(t *testing.T) {
	story(t, func(w *world) {
		c := w.clientOf(lanes(w.store), asynclock.WithRetention(bound))
		unlock(w, lock(w, c, "key"))
		w.store.Tell(0, store.Event{Kind: store.EventResync, OneLane: true, Lane: 'a'})
		w.store.Tell(0, store.Event{Kind: store.EventDisconnected, OneLane: true, Lane: 'a'})
		w.wantRetained(true)
		w.store.Tell(0, store.Event{Kind: store.EventDisconnected, OneLane: true, Lane: 'k'})
		w.wantRetained(false)
	})
}
