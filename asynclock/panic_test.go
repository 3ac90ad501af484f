// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// Panics are those to come, of the next call of a kind.
type panics struct{ acquire, release atomic.Bool }

// panicking has the store panic in the next call that asks for it.
func panicking(st altered) (altered, *panics) {
	p := new(panics)
	st.acquire = func(context.Context, []store.AcquireRequest) error {
		panicOnce(&p.acquire)
		return nil
	}
	st.release = func(context.Context, []store.ReleaseRequest) error {
		panicOnce(&p.release)
		return nil
	}
	return st, p
}

func panicOnce(now *atomic.Bool) {
	if now.CompareAndSwap(true, false) {
		time.Sleep(time.Millisecond) // long enough for another to come meanwhile
		panic("on demand")
	}
}

// recovered calls f, and recovers from its panic as a server of requests does.
func recovered(tb testing.TB, f func()) {
	tb.Helper()
	defer func() {
		if recover() == nil {
			tb.Error("no panic, want it to go on to the caller")
		}
	}()
	f()
}

// wantNoKeyHeld fails the test if one of the keys is held, also by the client itself.
func (w *world) wantNoKeyHeld(c *asynclock.Client, keys ...string) {
	w.Helper()
	for _, key := range keys {
		l, err := c.TryLock(w.Context(), key)
		if err != nil {
			w.Fatalf("%q: got %v, want it free", key, err)
		}
		unlock(w, l)
	}
}

// A store that panics on the caller's goroutine may be survived by it. Then the key
// has to be usable as after any other request without an answer.
func TestPanicOfTheStoreLeavesTheKeyUsable(t *testing.T) {
	for name, use := range map[string]func(w *world, c *asynclock.Client, s *panics){
		"lock": func(w *world, c *asynclock.Client, s *panics) {
			s.acquire.Store(true)
			recovered(w, func() { _, _ = c.Lock(w.Context(), "key") })
		},
		"lock, and another waits": func(w *world, c *asynclock.Client, s *panics) {
			s.acquire.Store(true)
			future := make(chan (<-chan asynclock.Result), 1)
			time.AfterFunc(time.Millisecond/2, func() { future <- c.LockChan(w.Context(), "key") })
			recovered(w, func() { _, _ = c.Lock(w.Context(), "key") })
			l := claim(w, <-future)
			unlock(w, l)
		},
		"try lock": func(w *world, c *asynclock.Client, s *panics) {
			s.acquire.Store(true)
			recovered(w, func() { _, _ = c.TryLock(w.Context(), "key") })
		},
		"lock all": func(w *world, c *asynclock.Client, s *panics) {
			s.acquire.Store(true)
			recovered(w, func() { _, _ = c.LockAll(w.Context(), []string{"another", "key"}) })
		},
		"lock all, which has some of the keys": func(w *world, c *asynclock.Client, s *panics) {
			held := lock(w, c, "key2")
			time.AfterFunc(time.Millisecond, func() {
				s.acquire.Store(true)
				unlock(w, held)
			})
			recovered(w, func() { _, _ = c.LockAll(w.Context(), []string{"key", "key2", "key3", "key4"}) })
			w.wait()
			w.wantNoKeyHeld(c, "key", "key2", "key3", "key4")
		},
		"lock all, which has joined a key": func(w *world, c *asynclock.Client, s *panics) {
			held := lock(w, c, "key")
			s.acquire.Store(true)
			recovered(w, func() { _, _ = c.LockAll(held.Context(), []string{"key", "key2"}, asynclock.WithReentry(true)) })
			unlock(w, held)
		},
		"unlock all": func(w *world, c *asynclock.Client, s *panics) {
			m := lockAll(w, c, []string{"another", "key"})
			s.release.Store(true)
			recovered(w, func() { _ = m.Unlock(w.Context()) })
			unlockAll(w, m)
		},
		"downgrade": func(w *world, c *asynclock.Client, s *panics) {
			l := lock(w, c, "key")
			s.release.Store(true)
			recovered(w, func() { _, _ = l.Downgrade(w.Context()) })
			unlock(w, l)
		},
		"unlock": func(w *world, c *asynclock.Client, s *panics) {
			l := lock(w, c, "key")
			s.release.Store(true)
			recovered(w, func() { _ = l.Unlock(w.Context()) })
			unlock(w, l)
		},
	} {
		scene(t, name, func(w *world) {
			st, s := panicking(altered{Store: memstore.New()})
			c, err := asynclock.New(st)
			if err != nil {
				w.Fatal(err)
			}
			use(w, c, s)
			w.wait()
			l, err := c.TryLock(w.Context(), "key")
			if err != nil {
				w.Fatal(err)
			}
			unlock(w, l)
			before := time.Now()
			if err := c.Close(w.Context()); err != nil {
				w.Error(err)
			}
			wantTime(w, "end of Close", time.Now(), before)
		})
	}
}

// Nor does a context that panics keep a key which nobody will unlock.
func TestPanicOfAContextLeavesTheKeyUsable(t *testing.T) {
	scene(t, "while waiting", func(w *world) {
		holder, c := w.client(), w.client()
		held := lock(w, holder, "key")
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(time.Second/2, 0))
		var panics atomic.Bool
		time.AfterFunc(time.Second/4, func() {
			panics.Store(true)
			unlock(w, held)
		})
		recovered(w, func() { _, _ = c.Lock(foreignContext{w.Context(), func() { panicOnce(&panics) }}, "key") })
		w.wait()
		w.wantUnused()
	})
	scene(t, "while asking for the lease's", func(w *world) {
		var panics atomic.Bool
		l, err := w.client().Lock(foreignContext{w.Context(), func() { panicOnce(&panics) }}, "key")
		if err != nil {
			w.Fatal(err)
		}
		panics.Store(true)
		recovered(w, func() { l.Context() })
		wantValid(w, l)
		unlock(w, l)
	})
}

// A panic on a goroutine of its own would end the process.
func TestPanicInOneOfSeveralLanesIsTheCallers(t *testing.T) {
	story(t, func(w *world) {
		st, s := panicking(lanes(memstore.New()))
		c, err := asynclock.New(st)
		if err != nil {
			w.Fatal(err)
		}
		s.acquire.Store(true)
		recovered(w, func() { _, _ = c.LockAll(w.Context(), three) })
		w.wait()
		w.wantNoKeyHeld(c, three...)
		m := lockAll(w, c, three)
		s.release.Store(true)
		recovered(w, func() { _ = m.Unlock(w.Context()) })
		unlockAll(w, m)
		w.wantNoKeyHeld(c, three...)
		if err := c.Close(w.Context()); err != nil {
			w.Error(err)
		}
	})
}
