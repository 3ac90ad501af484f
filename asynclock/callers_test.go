// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
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
			wantError(w, c.Close(w.Context()), nil)
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
		wantError(w, c.Close(w.Context()), nil)
	})
}

// A foreignContext is the application's own code: whatever it is asked, it looks at
// something else first.
type foreignContext struct {
	context.Context

	look func()
}

func (c foreignContext) Deadline() (time.Time, bool) { c.look(); return c.Context.Deadline() }
func (c foreignContext) Done() <-chan struct{}       { c.look(); return c.Context.Done() }
func (c foreignContext) Err() error                  { c.look(); return c.Context.Err() }
func (c foreignContext) Value(key any) any           { c.look(); return c.Context.Value(key) }

// A context that looks at a lease of the very key that is asked for with it hangs
// nothing, since its code is never called under a mutex. (Not in bubbles, which do
// not end when somebody waits for a mutex.)
func TestContextMayAskAboutLeases(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, c *asynclock.Client, held *asynclock.Lease, ctx context.Context, cancel func()){
		"a future that is cancelled": func(t *testing.T, c *asynclock.Client, held *asynclock.Lease, ctx context.Context, cancel func()) {
			futures := []<-chan asynclock.Result{c.LockChan(ctx, "key"), c.LockChan(ctx, "key")}
			cancel()
			for _, future := range futures {
				wantError(t, errOf((<-future).Lease()), context.Canceled)
			}
			unlock(t, held)
		},
		"a future that is claimed": func(t *testing.T, c *asynclock.Client, held *asynclock.Lease, ctx context.Context, _ func()) {
			future := c.LockChan(ctx, "key")
			unlock(t, held)
			l := claim(t, future)
			unlock(t, l)
		},
		"a future of several keys": func(t *testing.T, c *asynclock.Client, held *asynclock.Lease, ctx context.Context, cancel func()) {
			future := c.LockAllChan(ctx, []string{"key", "another"})
			unlock(t, held)
			m, err := (<-future).Lease()
			if err != nil {
				t.Fatal(err)
			}
			below, stop := context.WithCancel(m.Context())
			defer stop()
			if _, err := c.ForceUnlock(t.Context(), "key", 0); err != nil {
				t.Fatal(err)
			}
			<-below.Done()
			cancel()
			wantError(t, m.Unlock(ctx), asynclock.ErrForced)
		},
		"a future at Close": func(t *testing.T, c *asynclock.Client, _ *asynclock.Lease, ctx context.Context, _ func()) {
			future := c.LockChan(ctx, "key")
			abandon(c)
			wantError(t, errOf((<-future).Lease()), asynclock.ErrClosed)
		},
		"WithLock": func(t *testing.T, c *asynclock.Client, held *asynclock.Lease, ctx context.Context, _ func()) {
			if err := c.WithLock(context.WithValue(ctx, t, t), "another", func(_ context.Context, l *asynclock.Lease) error {
				unlock(t, held)
				unlock(t, l)
				return nil
			}); err != nil {
				t.Error(err)
			}
		},
		"WithLock of the key": func(t *testing.T, c *asynclock.Client, held *asynclock.Lease, ctx context.Context, _ func()) {
			unlock(t, held)
			if err := c.WithLock(ctx, "key", func(ctx context.Context, l *asynclock.Lease) error {
				unlock(t, l)
				wantError(t, context.Cause(ctx), asynclock.ErrUnlocked)
				return nil
			}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := asynclock.New(asynclocktest.New())
			if err != nil {
				t.Fatal(err)
			}
			held := lock(t, c, "key")
			parent, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer cancel()
				use(t, c, held, foreignContext{parent, func() { held.Valid(0) }}, cancel)
				abandon(c)
			}()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("it hangs")
			}
		})
	}
}

// One that does not answer at all holds up nobody: not the watchdog, which takes back
// what was asked for with it, and so not the renewal of anything else.
func TestContextThatHangsHoldsUpNobody(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		var hanging atomic.Bool
		until := make(chan struct{})
		w.Cleanup(func() { close(until) })
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		future := c.LockChan(foreignContext{ctx, func() {
			if hanging.Load() {
				<-until
			}
		}}, "key")
		others := make([]*asynclock.Lease, 10)
		for i := range others {
			others[i] = lock(w, c, fmt.Sprint("another ", i))
		}
		w.wait()
		hanging.Store(true)
		w.pass(2 * ttl)
		for _, l := range others {
			wantValid(w, l)
		}
		unlock(w, lock(w, c, "key"))
		w.wait()
		unlock(w, claim(w, future))
		hanging.Store(false)
	})
}

// A countedContext counts who is registered with it.
type countedContext struct {
	context.Context

	watches *atomic.Int32
}

// AfterFunc is what package context registers with, if there is nothing better.
func (c countedContext) AfterFunc(f func()) func() bool {
	c.watches.Add(1)
	stop := context.AfterFunc(c.Context, f)
	return func() bool {
		c.watches.Add(-1)
		return stop()
	}
}

// Value has nothing, not even for package context.
func (countedContext) Value(any) any { return nil }

func TestWatchOfAContextIsPutOut(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		parent, cancel := context.WithCancel(w.Context())
		defer cancel()
		ctx := countedContext{parent, new(atomic.Int32)}
		want := func(n int32, when string) {
			w.wait()
			if got := ctx.watches.Load(); got != n {
				w.Errorf("%s: got %d watches, want %d", when, got, n)
			}
		}
		first, second := c.LockChan(ctx, "key"), c.LockChan(ctx, "key")
		want(1, "while two futures wait")
		l := claim(w, second)
		want(1, "when one was received")
		unlock(w, l)
		l = claim(w, first)
		want(0, "when the other was received")
		unlock(w, l)
		l = claim(w, c.LockChan(ctx, "key"))
		want(0, "when a third was received")
		unlock(w, l)
	})
}
