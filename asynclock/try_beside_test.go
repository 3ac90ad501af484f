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

// The stories that follow are about a TryLock that finds another's first
// request of the same client under way. It refuses only if somebody holds.

// try makes a TryLock in a goroutine of its own.
func (w *world) try(ctx context.Context, c *asynclock.Client) *pending {
	return begin(w, func() (*asynclock.Lease, error) { return c.TryLock(ctx, "key") })
}

// That the first caller's context ends says nothing of the key: the TryLock
// goes on by itself.
func TestTryLockBesideARequestWhoseCallerLeaves(t *testing.T) {
	begin := map[string]func(w *world, ctx context.Context, c *asynclock.Client) *pending{
		"a Lock":    func(w *world, ctx context.Context, c *asynclock.Client) *pending { return w.ask(ctx, c, "key") },
		"a TryLock": func(w *world, ctx context.Context, c *asynclock.Client) *pending { return w.try(ctx, c) },
	}
	for name, begin := range begin {
		scene(t, name, func(w *world) {
			c := w.client()
			w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Hang)
			ctx, cancel := context.WithCancel(w.Context())
			first := begin(w, ctx, c)
			second, third := w.try(w.Context(), c), w.try(w.Context(), c)
			cancel()
			wantError(w, first.ended(), context.Canceled)
			if second.ended() != nil {
				second, third = third, second // one of them
			}
			wantError(w, third.ended(), asynclock.ErrHeld)
			unlock(w, second.has())
			w.wait()
			w.wantUnused()
		})
	}
}

// T4: what a client is giving back by itself is in the way of no TryLock of that client.
func TestTryLockOfAKeyThatItsClientGivesBack(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithRetention(time.Second))
		unlock(w, lock(w, c, "key"))
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Slow(callTimeout/4, 0))
		w.pass(time.Second + time.Millisecond) // nobody in the client uses the key any more
		l, err := c.TryLock(w.Context(), "key")
		if err != nil {
			w.Fatal(err)
		}
		unlock(w, l)
	})
}

// Others may wait behind the one that leaves. Then the TryLock waits for the
// answer to their request.
func TestTryLockBesideARequestThatTheNextWaiterContinues(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Hang, asynclocktest.Slow(callTimeout/4, callTimeout/4))
		ctx, cancel := context.WithCancel(w.Context())
		first, second := w.ask(ctx, c, "key"), w.ask(w.Context(), c, "key")
		third := w.try(w.Context(), c)
		cancel()
		wantError(w, first.ended(), context.Canceled)
		third.waits()
		w.pass(callTimeout / 2)
		wantError(w, third.ended(), asynclock.ErrHeld)
		unlock(w, second.has())
	})
}

// The TryLock's own context bounds it.
func TestTryLockBesideARequestEndsWithItsContext(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Hang)
		w.ask(w.Context(), c, "key")
		ctx, cancel := context.WithTimeout(w.Context(), callTimeout/4)
		defer cancel()
		begun := time.Now()
		p := w.try(ctx, c)
		p.wantEnd(context.DeadlineExceeded)
		wantAround(w, "end", p.at, begun.Add(callTimeout/4))
		if errors.Is(p.err, asynclock.ErrUnreachable) {
			w.Errorf("got %v, want what a TryLock that is alone says", p.err)
		}
	})
}

func TestTryLockBesideARequestEndsWithTheClient(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Hang)
		w.ask(w.Context(), c, "key")
		p := w.try(w.Context(), c)
		abandon(c)
		wantError(w, p.ended(), asynclock.ErrClosed)
	})
}

// A future that does not wait finds another's request under way. It goes by that answer, too.
func TestFutureThatDoesNotWaitBesideARequest(t *testing.T) {
	future := func(w *world, c *asynclock.Client) <-chan asynclock.Result {
		future := c.LockChan(w.Context(), "key", asynclock.WithWait(0))
		w.wait()
		if len(future) != 0 {
			w.Error("the future has a result before the store has answered")
		}
		return future
	}
	scene(t, "that is granted", func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Slow(0, callTimeout/2))
		first := w.ask(w.Context(), c, "key")
		second := future(w, c)
		w.pass(callTimeout / 2)
		first.has()
		wantError(w, errOf((<-second).Lease()), asynclock.ErrHeld)
	})
	scene(t, "that is given up", func(w *world) {
		c := w.client()
		ctx, cancel := context.WithCancel(w.Context())
		w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Hang)
		first := w.ask(ctx, c, "key")
		second := future(w, c)
		cancel()
		wantError(w, first.ended(), context.Canceled)
		l := claim(w, second)
		unlock(w, l)
	})
	scene(t, "as the client is closed", func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Slow(0, callTimeout/2))
		w.ask(w.Context(), c, "key")
		second := future(w, c)
		abandon(c)
		wantError(w, errOf((<-second).Lease()), asynclock.ErrClosed)
	})
}

// The holder's client is asked for a key that it retains, and the try that asked may end before it asks again. Those
// behind it still have an answer.
func TestTryBehindOneThatDoesNotAskAgain(t *testing.T) {
	for name, first := range map[string]func(c *asynclock.Client) acquire{
		"TryLock": func(c *asynclock.Client) acquire { return c.TryLock },
		"TryLockAll": func(c *asynclock.Client) acquire {
			return func(ctx context.Context, key string, _ ...asynclock.LockOption) (*asynclock.Lease, error) {
				_, err := c.TryLockAll(ctx, []string{key})
				return nil, err
			}
		},
		"a future": func(c *asynclock.Client) acquire {
			return func(ctx context.Context, key string, _ ...asynclock.LockOption) (*asynclock.Lease, error) {
				return (<-c.LockChan(ctx, key, asynclock.WithWait(0))).Lease()
			}
		},
	} {
		for when, after := range map[string]time.Duration{
			"under way": roundTrip / 2, "pausing": roundTrip + time.Millisecond, "asking again": 3*roundTrip + time.Millisecond,
		} {
			scene(t, name+" "+when, func(w *world) {
				holder, c := w.client(), w.client()
				l := lock(w, holder, "key", asynclock.WithRetention(time.Minute))
				defer unlock(w, l) // it is not retained yet
				w.store.Every(asynclocktest.Match(asynclocktest.Any).From(1), asynclocktest.Slow(roundTrip/2, roundTrip/2))
				ctx, cancel := context.WithTimeout(w.Context(), after)
				defer cancel()
				go func() { _, _ = first(c)(ctx, "key") }()
				time.Sleep(after - time.Millisecond)
				bounded, done := context.WithTimeout(w.Context(), time.Minute)
				defer done()
				begun := time.Now()
				_, err := c.TryLock(bounded, "key")
				if took := time.Since(begun); !errors.Is(err, asynclock.ErrHeld) || took > 10*roundTrip {
					w.Errorf("got error %v after %v, want ErrHeld after a few round trips", err, took)
				}
			})
		}
	}
}
