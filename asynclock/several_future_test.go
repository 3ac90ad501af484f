// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

func TestLockAllChanIsSelectedOn(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		b := lock(w, theirs, "b")
		future := ours.LockAllChan(w.Context(), []string{"b", "a"}, asynclock.WithMaxHold(time.Hour))
		select {
		case <-future:
			w.Fatal("the future is granted while a key is held")
		case <-time.After(time.Minute):
		}
		w.wantHeld("a", "b")
		unlock(w, b)
		result := <-future
		m, err := result.Lease()
		if err != nil {
			w.Fatal(err)
		}
		claimed := time.Now()
		again, err := result.Lease()
		if again != m || err != nil {
			w.Errorf("claimed twice: got %v, %v; want the same lease", again, err)
		}
		w.pass(10 * ttl)
		if m.Err() != nil {
			w.Errorf("got error %v, want it renewed", m.Err())
		}
		<-m.Done()
		wantTime(w, "end", time.Now(), claimed.Add(time.Hour))
		wantError(w, m.Unlock(w.Context()), asynclock.ErrMaxHold)
		w.wait()
		w.wantUnused()
	})
}

// Whatever happens, there is one result and nothing is held after an error.
func TestLockAllChanHasExactlyOneResult(t *testing.T) {
	why := errors.New("why")
	type end func(w *world, c *asynclock.Client, cancel context.CancelCauseFunc)
	var (
		cancels end = func(_ *world, _ *asynclock.Client, cancel context.CancelCauseFunc) { cancel(why) }
		closes  end = func(w *world, c *asynclock.Client, _ context.CancelCauseFunc) {
			start := time.Now()
			w.close(c)
			wantTime(w, "Close", time.Now(), start)
		}
		forces end = func(w *world, _ *asynclock.Client, _ context.CancelCauseFunc) {
			w.force(w.bounded(), "c")
			w.pass(time.Second) // nobody has lost anything: the keys are gathered again
		}
	)
	for _, c := range []struct {
		name    string
		granted bool // before the end
		end     end
		want    error
	}{
		{"cancelled", false, cancels, why},
		{"closed", false, closes, asynclock.ErrClosed},
		{"granted", true, func(*world, *asynclock.Client, context.CancelCauseFunc) {}, nil},
		{"granted, then cancelled", true, cancels, why},
		{"granted, then closed", true, closes, asynclock.ErrClosed},
		{"granted, and received late", true, func(w *world, _ *asynclock.Client, _ context.CancelCauseFunc) {
			w.pass(10 * ttl)
		}, nil},
		{"granted, then a part is taken by force", true, forces, nil},
		{"in vain", false, func(w *world, _ *asynclock.Client, _ context.CancelCauseFunc) {
			stop := w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Refuse)
			w.pass(time.Minute)
			stop()
		}, asynclock.ErrUnreachable},
	} {
		scene(t, c.name, func(w *world) {
			holder, ours := w.bounded(), w.bounded()
			held := lock(w, holder, "b")
			ctx, cancel := context.WithCancelCause(w.Context())
			defer cancel(nil)
			future := ours.LockAllChan(ctx, []string{"c", "b", "a"}, asynclock.WithMinHold(time.Hour))
			w.wait()
			if c.granted {
				unlock(w, held)
				w.wait()
			}
			c.end(w, ours, cancel)
			w.wait()
			if len(future) != 1 {
				w.Fatalf("the channel has %d results, want one", len(future))
			}
			if c.want != nil && c.granted {
				w.wantUnused() // whether or not anybody receives
			}
			result := <-future
			m, err := result.Lease()
			if !errors.Is(err, c.want) || (m == nil) == (err == nil) {
				w.Errorf("got lease %v, error %v; want error %v", m, err, c.want)
			}
			again, err2 := result.Lease()
			if again != m || !errors.Is(err2, err) {
				w.Errorf("claimed twice: got %v, %v and %v, %v; want one answer", m, err, again, err2)
			}
			w.wait()
			switch {
			case m != nil:
				unlockAll(w, m)
				w.wantHeld("a", "b", "c") // by the minimum hold
			case c.granted:
				w.wantUnused()
			default:
				w.wantHeld("b")
			}
		})
	}
}

// The receiver owns the lease, whatever becomes of the context. A part that ends before the first look is an error.
func TestLockAllChanIsTheReceivers(t *testing.T) {
	story(t, func(w *world) {
		c := w.bounded()
		ctx, cancel := context.WithCancel(w.Context())
		result := <-c.LockAllChan(ctx, []string{"a", "b"})
		cancel()
		p := w.ask(w.Context(), c, "a")
		w.pass(10 * ttl)
		p.waits()
		m, err := result.Lease()
		if err != nil {
			w.Fatal(err)
		}
		unlockAll(w, m)
		unlock(w, p.get())

		result = <-c.LockAllChan(w.Context(), []string{"a", "b"})
		w.force(c, "b")
		_, err = result.Lease()
		wantError(w, err, asynclock.ErrForced)
		wantOp(w, err, "lock all", "b")
		w.wait()
		w.wantUnused()
	})
}

// A lease that nobody has received goes to whoever wants a part of it, and is gathered again later.
func TestLockAllChanGivesWay(t *testing.T) {
	type want func(w *world, ours, theirs *asynclock.Client)
	takes := func(w *world, c *asynclock.Client) {
		start := time.Now()
		p := w.ask(w.Context(), c, "b")
		unlock(w, p.get())
		if waited := p.at.Sub(start); waited > 100*time.Millisecond {
			w.Errorf("the other waited for %v, want a tenth of a second at most", waited)
		}
	}
	for name, wanted := range map[string]want{
		"to another client": func(w *world, _, theirs *asynclock.Client) { takes(w, theirs) },
		"to its own client": func(w *world, ours, _ *asynclock.Client) { takes(w, ours) },
		"to who never waits, the second time": func(w *world, _, theirs *asynclock.Client) {
			if _, err := theirs.TryLock(w.Context(), "a"); err == nil {
				w.Error("TryLock has the key, want it to be refused first")
			}
			w.pass(100 * time.Millisecond)
			unlock(w, trylock(w, theirs, "a"))
		},
		"to who never waits in its own client, the second time": func(w *world, ours, _ *asynclock.Client) {
			if _, err := ours.TryLock(w.Context(), "a"); err == nil {
				w.Error("TryLock has the key, want it to be refused first")
			}
			w.pass(100 * time.Millisecond)
			unlock(w, trylock(w, ours, "a"))
		},
	} {
		scene(t, name, func(w *world) {
			ours, theirs := w.bounded(), w.bounded()
			future := ours.LockAllChan(w.Context(), []string{"a", "b", "c"})
			w.pass(time.Minute)
			wanted(w, ours, theirs)
			w.pass(time.Second)
			if len(future) != 1 {
				w.Fatal("the keys were not gathered again")
			}
			m, err := (<-future).Lease()
			if err != nil {
				w.Fatal(err)
			}
			unlockAll(w, m)
			w.wantUnused()
		})
	}
}

func trylock(w *world, c *asynclock.Client, key string) *asynclock.Lease {
	w.Helper()
	l, err := c.TryLock(w.Context(), key)
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// One that pauses ends as soon as its context or its client does.
func TestLockAllChanEndsDuringItsPause(t *testing.T) {
	for _, closes := range []bool{false, true} {
		scene(t, fmt.Sprint("closes: ", closes), func(w *world) {
			ours, theirs := w.bounded(), w.bounded()
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			future := ours.LockAllChan(ctx, []string{"a", "b"})
			w.pass(time.Minute)
			unlock(w, w.ask(w.Context(), theirs, "a").get())
			w.wait()
			if len(future) != 0 {
				w.Fatal("the future has a result, want it to pause")
			}
			start, want := time.Now(), context.Canceled
			if closes {
				want = asynclock.ErrClosed
				w.close(ours)
			}
			cancel()
			wantError(w, errOf((<-future).Lease()), want)
			wantTime(w, "the end", time.Now(), start)
			w.wantUnused()
		})
	}
}

// Two that nobody receives from pause longer and longer, so that they leave the keys to others.
func TestTwoForgottenLockAllChansPause(t *testing.T) {
	story(t, func(w *world) {
		one := w.bounded().LockAllChan(w.Context(), []string{"a", "b"})
		other := w.bounded().LockAllChan(w.Context(), []string{"a", "b"})
		w.pass(10 * time.Minute)
		before := w.calls(asynclocktest.Acquire.Any)
		w.pass(10 * time.Minute)
		if n := w.calls(asynclocktest.Acquire.Any) - before; n > 1000 {
			w.Errorf("%d requests in ten minutes, want few", n)
		}
		runtime.KeepAlive(one)
		runtime.KeepAlive(other)
	})
}

// A future that shares the caller's leases stays, because others who want the keys wait for those.
func TestLockAllChanStaysUnderALeaseThatOthersWaitFor(t *testing.T) {
	story(t, func(w *world) {
		c := w.bounded(asynclock.WithReentry(true))
		outer := lockAll(w, c, []string{"a", "b"})
		future := c.LockAllChan(outer.Context(), []string{"b", "a"})
		p := w.ask(w.Context(), w.bounded(), "a")
		w.pass(time.Second)
		p.waits()
		if len(future) != 1 {
			w.Error("the future was given back, and nobody has got more by that")
		}
		unlockAll(w, outer)
		unlock(w, p.get())
		wantError(w, errOf((<-future).Lease()), context.Canceled)
		w.wantUnused()
	})
}

// A future under a lease of all its keys keeps neither Close nor, for long, the keys.
func TestLockAllChanUnderALease(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.bounded(asynclock.WithReentry(true)), w.bounded()
		outer := lockAll(w, c, []string{"a", "b"})
		future := c.LockAllChan(outer.Context(), []string{"b", "a"})
		received, err := (<-c.LockAllChan(outer.Context(), []string{"b", "a"})).Lease()
		if err != nil {
			w.Fatal(err)
		}
		unlockAll(w, outer)
		w.wait()
		wantError(w, errOf((<-future).Lease()), context.Canceled)
		w.wantHeld("a", "b")
		unlockAll(w, received)
		w.wantUnused()

		outer = lockAll(w, c, []string{"a", "b"})
		future = c.LockAllChan(context.WithoutCancel(outer.Context()), []string{"b", "a"})
		w.wait()
		unlockAll(w, outer)
		unlock(w, w.ask(w.Context(), other, "a").get())
		w.pass(time.Second)
		m, err := (<-future).Lease()
		if err != nil {
			w.Fatal(err)
		}
		unlockAll(w, m)
		w.wantUnused()

		outer = lockAll(w, c, []string{"a", "b"})
		c.LockAllChan(context.WithoutCancel(outer.Context()), []string{"b", "a"})
		w.wait()
		unlockAll(w, outer)
		start := time.Now()
		w.close(c)
		wantTime(w, "Close", time.Now(), start)
		w.wantUnused()
	})
}

// A future that nobody receives gives its keys back, and comes last when it requests them again.
func TestLockAllChanThatNobodyReceivesKeepsNoPlace(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs, others := w.bounded(), w.bounded(), w.bounded()
		first := lock(w, theirs, "a")
		future := ours.LockAllChan(w.Context(), []string{"a", "b"})
		w.wait()
		unlock(w, first) // the future has waited, and has both keys
		w.wait()
		second := w.ask(w.Context(), theirs, "a")
		second.waits()
		third := w.ask(w.Context(), others, "a")
		w.pass(time.Minute) // the future gives the keys back, and requests them again
		third.waits()
		unlock(w, second.has())
		unlock(w, third.has())
		l, err := (<-future).Lease()
		if err != nil {
			w.Fatal(err)
		}
		unlockAll(w, l)
		w.wantUnused()
	})
}

// A caller that takes over the request of another one, who has gone, has not waited as long.
func TestLockAllBringsNoPlaceOfAnotherCaller(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs, others := w.bounded(), w.bounded(), w.bounded()
		a, b := lock(w, theirs, "a"), lock(w, theirs, "b")
		ctx, cancel := context.WithCancel(w.Context())
		gone := w.askAll(ctx, ours, []string{"a", "b"})
		gone.waits()
		older := w.askAll(w.Context(), others, []string{"b"})
		older.waits()
		newer := w.askAll(w.Context(), ours, []string{"a", "b"})
		newer.waits()
		cancel()
		wantError(w, gone.ended(), context.Canceled)
		w.pass(time.Minute) // heartbeats
		unlock(w, a)
		newer.waits()
		unlock(w, b)
		unlockAll(w, older.has())
		unlockAll(w, newer.has())
		w.wantUnused()
	})
}
