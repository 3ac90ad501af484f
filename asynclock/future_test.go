// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// claim takes the lease that must lie in a future's channel by now.
func (w *world) claim(future <-chan asynclock.Result) *asynclock.Lease {
	w.Helper()
	w.wait()
	if len(future) != 1 {
		w.Fatal("the future is pending, want it granted")
	}
	l := claim(w, future)
	return l
}

func TestFutureIsSelectedOn(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		future := waiter.LockChan(w.Context(), "key")
		select {
		case <-future:
			w.Fatal("the future is granted while the key is held")
		case <-time.After(time.Minute):
		}
		time.AfterFunc(time.Minute, func() { unlock(w, held) })
		select {
		case result := <-future:
			l, err := result.Lease()
			if err != nil {
				w.Fatal(err)
			}
			unlock(w, l)
		case <-time.After(2 * time.Minute):
			w.Fatal("the future is pending, want it granted by now")
		}
		w.wantUnused()
	})
}

// Whatever happens the channel has one result, is not closed, and has no second
// one.
func TestFutureHasExactlyOneResult(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world, cancel context.CancelFunc, c *asynclock.Client, holder *asynclock.Lease)
		want error
	}{
		{"granted", func(w *world, _ context.CancelFunc, _ *asynclock.Client, l *asynclock.Lease) { unlock(w, l) }, nil},
		{"cancelled", func(_ *world, cancel context.CancelFunc, _ *asynclock.Client, _ *asynclock.Lease) { cancel() }, context.Canceled},
		{"closed", func(w *world, _ context.CancelFunc, c *asynclock.Client, _ *asynclock.Lease) {
			w.close(c)
		}, asynclock.ErrClosed},
		{"granted, then cancelled", func(w *world, cancel context.CancelFunc, _ *asynclock.Client, l *asynclock.Lease) {
			unlock(w, l)
			cancel()
		}, context.Canceled},
		{"granted, then closed", func(w *world, _ context.CancelFunc, c *asynclock.Client, l *asynclock.Lease) {
			unlock(w, l)
			w.close(c)
		}, asynclock.ErrClosed},
		{"granted, and received late", func(w *world, _ context.CancelFunc, _ *asynclock.Client, l *asynclock.Lease) {
			unlock(w, l)
			w.pass(10 * ttl)
		}, nil},
		{"granted, then taken by force", func(w *world, _ context.CancelFunc, c *asynclock.Client, l *asynclock.Lease) {
			unlock(w, l)
			w.wait()
			if _, err := c.ForceUnlock(w.Context(), "key", 0); err != nil {
				w.Error(err)
			}
		}, nil}, // nobody has lost anything
		{"all at once", func(w *world, cancel context.CancelFunc, c *asynclock.Client, l *asynclock.Lease) {
			go cancel()
			go l.UnlockChan(w.Context())
			_ = c.Close(w.Context())
		}, errAny},
		{"in vain", func(w *world, _ context.CancelFunc, _ *asynclock.Client, _ *asynclock.Lease) {
			w.store.Every(asynclocktest.Any, asynclocktest.Refuse)
			w.pass(time.Minute)
		}, asynclock.ErrUnreachable},
	} {
		scene(t, c.name, func(w *world) {
			holder, waiter := w.client(), w.client()
			held := lock(w, holder, "key")
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			future := waiter.LockChan(ctx, "key")
			w.wait()
			c.end(w, cancel, waiter, held)
			w.wait()
			if len(future) != 1 {
				w.Fatalf("the channel has %d results, want one", len(future))
			}
			result := <-future
			l, err := result.Lease()
			if !errors.Is(c.want, errAny) && !errors.Is(err, c.want) || (l == nil) == (err == nil) {
				w.Errorf("got lease %v, error %v; want error %v", l, err, c.want)
			}
			if err != nil {
				wantOp(w, err, "lock", "key")
			}
			again, err2 := result.Lease()
			if again != l || (err2 == nil) != (err == nil) || err != nil && err.Error() != err2.Error() {
				w.Errorf("claimed twice: got %v, %v and %v, %v; want one answer", l, err, again, err2)
			}
			cancel()
			w.pass(time.Minute)
			select {
			case second, open := <-future:
				w.Errorf("the channel has a second result %v, open %v", second, open)
			default:
			}
		})
	}
}

// errAny stands for one error or none, whoever was faster.
var errAny = errors.New("any")

// A key that nobody has received goes to others who want it: of the same client at once, of another after the
// patience, or at once when the future has ended. A future that has not ended has the key later.
func TestWhatNobodyReceivesGoesToTheNext(t *testing.T) {
	stays := func(*world, context.CancelFunc, *asynclock.Client) {}
	for _, c := range []struct {
		name   string
		remote bool
		lain   time.Duration // before the other wants the key
		end    func(w *world, cancel context.CancelFunc, c *asynclock.Client)
		turn   time.Duration // of the other, after the grant
		want   error
	}{
		{"its context ends", true, 0, func(_ *world, cancel context.CancelFunc, _ *asynclock.Client) { cancel() }, 0, context.Canceled},
		{"its client closes", true, 0, func(w *world, _ context.CancelFunc, c *asynclock.Client) { w.close(c) }, 0, asynclock.ErrClosed},
		{"another client", true, 0, stays, 100 * time.Millisecond, nil},
		{"another client, later", true, time.Hour, stays, time.Hour, nil},
		{"the same client", false, 0, stays, 0, nil},
		{"the same client, later", false, time.Hour, stays, time.Hour, nil},
	} {
		scene(t, c.name, func(w *world) {
			mine, theirs := w.client(), w.client()
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			future := mine.LockChan(ctx, "key")
			w.wait()
			granted := time.Now()
			w.pass(c.lain)
			from := mine
			if c.remote {
				from = theirs
			}
			p := w.ask(w.Context(), from, "key")
			c.end(w, cancel, mine)
			l := p.get()
			wantTime(w, "the other's turn", p.at, granted.Add(c.turn))
			wantValid(w, l)
			if c.want == nil {
				if len(future) != 0 {
					w.Error("the future has a result while another has the key")
				}
				unlock(w, l)
				w.pass(250 * time.Millisecond)
				l = w.claim(future)
			} else {
				wantError(w, errOf((<-future).Lease()), c.want)
			}
			unlock(w, l)
			w.wantUnused()
		})
	}
}

// From the moment when it is received, the lease is the receiver's: renewed, and none of the context's business.
func TestReceivedLeaseIsTheReceivers(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		ctx, cancel := context.WithCancel(w.Context())
		future := c.LockChan(ctx, "key")
		w.pass(trusted(ttl) - time.Millisecond)
		result := <-future
		cancel()
		w.pass(10 * ttl)
		p := w.ask(w.Context(), other, "key")
		q := w.ask(w.Context(), c, "key")
		w.pass(10 * ttl)
		p.waits()
		q.waits()
		l, err := result.Lease()
		if err != nil {
			w.Fatal(err)
		}
		wantValid(w, l)
		unlock(w, l)
		unlock(w, p.get())
		unlock(w, q.get())
		w.wantUnused()
	})
}

// A lease that has ended between its receipt and the first look is an error. Its key need not be kept any longer.
func TestReceivedLeaseThatEndsBeforeTheFirstLook(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		result := <-c.LockChan(w.Context(), "key")
		w.force(c, "key")
		for range 2 {
			l, err := result.Lease()
			wantError(w, err, asynclock.ErrForced)
			wantOp(w, err, "lock", "key")
			if l != nil {
				w.Errorf("got lease %v beside the error", l)
			}
		}
		w.wantUnused()
	})
}

// Thousands of futures under one context end with it, and leave the store's
// queues.
func TestManyFuturesEndWithTheirContext(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		lock(w, holder, "one")
		ctx, cancel := context.WithCancel(w.Context())
		var futures []<-chan asynclock.Result
		for i := range 1000 {
			futures = append(futures, waiter.LockChan(ctx, "one"), waiter.LockChan(ctx, string(rune('a'+i))))
		}
		granted, kept := waiter.LockChan(ctx, "granted"), waiter.LockChan(w.Context(), "kept")
		w.wait()
		l := w.claim(granted)
		cancel()
		w.wait()
		for _, f := range futures {
			if len(f) != 1 {
				w.Fatal("a future is pending after the end of its context")
			}
			wantError(w, errOf((<-f).Lease()), context.Canceled)
		}
		wantValid(w, l)
		unlock(w, l)
		unlock(w, w.claim(kept))
		if got := w.inspect("one").Waiters; got != 0 {
			w.Errorf("the store has %d waiters, want none", got)
		}
	})
}

// A context that does not come from package context is watched as well.
func TestFutureEndsWithAnyKindOfContext(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		ctx := ownContext{Context: w.Context(), done: make(chan struct{})}
		future := waiter.LockChan(ctx, "key")
		second := waiter.LockChan(w.Context(), "key")
		w.wait()
		close(ctx.done)
		w.wait()
		wantError(w, errOf((<-future).Lease()), context.Canceled)
		unlock(w, held)
		unlock(w, w.claim(second))
	})
}

type ownContext struct {
	context.Context

	done chan struct{}
}

func (c ownContext) Done() <-chan struct{} { return c.done }

func (c ownContext) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}

// The cause of the end is told, too.
func TestEndOfWaitingTellsItsCause(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		lock(w, holder, "key")
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(w.Context())
		future := waiter.LockChan(ctx, "key")
		p := w.ask(ctx, waiter, "key")
		cancel(reason)
		wantError(w, errOf((<-future).Lease()), context.Canceled, reason)
		wantError(w, p.ended(), context.Canceled, reason)
		wantError(w, errOf(waiter.TryLock(ctx, "other")), context.Canceled, reason)
	})
}

// The zero Result, which no channel of ours has, is an error and no panic.
func TestZeroResult(t *testing.T) {
	l, err := asynclock.Result{}.Lease()
	if l != nil {
		t.Errorf("got lease %v, want none", l)
	}
	wantError(t, err, asynclock.ErrInvalidOption)
	if key := (asynclock.Result{}).Key(); key != "" {
		t.Errorf("got key %q, want none", key)
	}
}

// LockChan's error reads like Lock's.
func TestRefusedFutureSaysOnceWhatFailed(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		_, want := c.Lock(l.Context(), "key", asynclock.WithTTL(time.Minute))
		_, got := (<-c.LockChan(l.Context(), "key", asynclock.WithTTL(time.Minute))).Lease()
		if got.Error() != want.Error() {
			w.Errorf("got %q, want %q", got, want)
		}
		unlock(w, l)
	})
}
