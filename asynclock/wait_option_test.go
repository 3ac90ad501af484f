// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// A waitingCall waits for "key" by one of the forms.
type waitingCall func(ctx context.Context, c *asynclock.Client, options ...asynclock.LockOption) error

var waitingCalls = map[string]waitingCall{
	"Lock": func(ctx context.Context, c *asynclock.Client, options ...asynclock.LockOption) error {
		_, err := c.Lock(ctx, "key", options...)
		return err
	},
	"LockChan": func(ctx context.Context, c *asynclock.Client, options ...asynclock.LockOption) error {
		_, err := (<-c.LockChan(ctx, "key", options...)).Lease()
		return err
	},
	"WithLock": func(ctx context.Context, c *asynclock.Client, options ...asynclock.LockOption) error {
		return c.WithLock(ctx, "key", func(context.Context, *asynclock.Lease) error { return errors.New("fn was called") }, options...)
	},
}

// onEachWaitingCall tells a story of each form. The call of the story has to end when d is over.
func onEachWaitingCall(t *testing.T, d time.Duration, tell func(w *world, call waitingCall)) {
	t.Helper()
	for name, call := range waitingCalls {
		scene(t, name, func(w *world) {
			tell(w, func(ctx context.Context, c *asynclock.Client, options ...asynclock.LockOption) error {
				began := time.Now()
				err := call(ctx, c, options...)
				wantTime(w, "return", time.Now(), began.Add(d))
				return err
			})
		})
	}
}

func TestWithWaitBoundsTheWait(t *testing.T) {
	const bound = 2 * time.Second
	onEachWaitingCall(t, bound, func(w *world, call waitingCall) {
		holder, c := w.client(), w.client()
		l := lock(w, holder, "key")
		err := call(w.Context(), c, asynclock.WithWait(bound))
		wantError(w, err, context.DeadlineExceeded)
		if err != nil && !strings.Contains(err.Error(), "waited for 2s") {
			w.Errorf("got %q, want the bound named", err)
		}
		w.wait()
		if info := w.inspect("key"); info.Waiters != 0 {
			w.Errorf("%d are still queued", info.Waiters)
		}
		unlock(w, l)
	})
}

func TestWithWaitZeroIsRefusedAtOnce(t *testing.T) {
	onEachWaitingCall(t, 0, func(w *world, call waitingCall) {
		holder, c := w.client(asynclock.WithDescription("the holder")), w.client()
		l := lock(w, holder, "key")
		err := call(w.Context(), c, asynclock.WithWait(0))
		wantError(w, err, asynclock.ErrHeld)
		if held := new(asynclock.HeldError); !errors.As(err, &held) || held.Holder != "the holder" || held.Token != l.Token() {
			w.Errorf("got %#v, want the holder", held)
		}
		unlock(w, l)
	})
}

// A wait is bounded also when the store says nothing.
func TestWithWaitOnASilentStore(t *testing.T) {
	const bound = 300 * time.Millisecond
	onEachWaitingCall(t, bound, func(w *world, call waitingCall) {
		c := w.client()
		w.store.Every(asynclocktest.Any, asynclocktest.Hang)
		err := call(w.Context(), c, asynclock.WithWait(bound))
		wantError(w, err, context.DeadlineExceeded, asynclock.ErrUnreachable)
		if errors.Is(err, asynclock.ErrHeld) {
			w.Errorf("got %v, want nothing about a holder", err)
		}
	})
	onEachWaitingCall(t, bound, func(w *world, call waitingCall) {
		c := w.client()
		w.store.Every(asynclocktest.Any, asynclocktest.Hang)
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		time.AfterFunc(bound, cancel)
		err := call(ctx, c)
		wantError(w, err, context.Canceled)
		if errors.Is(err, asynclock.ErrUnreachable) {
			w.Errorf("got %v, want nothing about the store: the caller did not want the answer", err)
		}
	})
}

// The client's default bounds every call that waits; the call's own bound wins.
func TestWithWaitAsTheClientsDefault(t *testing.T) {
	story(t, func(w *world) {
		holder, c := w.client(), w.client(asynclock.WithWait(time.Second))
		l := lock(w, holder, "key")
		began := time.Now()
		wantError(w, errOf(c.Lock(w.Context(), "key")), context.DeadlineExceeded)
		if since(began) != time.Second {
			w.Errorf("waited for %v, want 1s", since(began))
		}
		wantError(w, errOf(c.Lock(w.Context(), "key", asynclock.WithWait(0))), asynclock.ErrHeld)
		_, err := c.TryLock(w.Context(), "key") // to which the default means nothing
		wantError(w, err, asynclock.ErrHeld)
		unlock(w, l)
	})
}

// Fn is not bounded by the wait, and neither is the lease.
func TestWithWaitDoesNotBoundTheWork(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		err := c.WithLock(w.Context(), "key", func(ctx context.Context, lease *asynclock.Lease) error {
			w.pass(time.Minute)
			wantValid(w, lease)
			return ctx.Err()
		}, asynclock.WithWait(time.Second))
		if err != nil {
			w.Error(err)
		}
		l := claim(w, c.LockChan(w.Context(), "key", asynclock.WithWait(time.Second)))
		w.pass(time.Minute)
		wantValid(w, l)
		if err := l.Context().Err(); err != nil {
			w.Errorf("the lease's context: %v", err)
		}
		unlock(w, l)
	})
}

// A lease passes from waiter to waiter whatever bounds their waits have.
func TestWaitersOfDifferentPatiencePassTheKeyOn(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		next := w.ask(w.Context(), c, "key", asynclock.WithWait(time.Minute))
		next.waits()
		releases := w.calls(asynclocktest.Release.Any)
		unlock(w, l)
		l = next.has()
		w.wantCalls(asynclocktest.Release.Any, releases)
		unlock(w, l)
	})
}

func TestWithWaitIsChecked(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		wantError(w, errOf(c.Lock(w.Context(), "key", asynclock.WithWait(-1))), asynclock.ErrInvalidOption)
		wantError(w, errOf(c.TryLock(w.Context(), "key", asynclock.WithWait(time.Second))), asynclock.ErrInvalidOption)
		l, err := c.TryLock(w.Context(), "key", asynclock.WithWait(0))
		if err != nil {
			w.Fatal(err)
		}
		unlock(w, l)
		w.wantUnused()
	})
}

// A wait that its context ends says what it waited for, as far as the client knows.
func TestWaitThatEndedSaysWhatItWaitedFor(t *testing.T) {
	for name, call := range waitingCalls {
		ends := func(t *testing.T, what string, c *asynclock.Client, text string, targets ...error) {
			t.Helper()
			err := call(t.Context(), c, asynclock.WithWait(time.Second))
			wantError(t, err, append(targets, context.DeadlineExceeded)...)
			if !strings.HasSuffix(err.Error(), text) {
				t.Errorf("%s: got %q, want %q at its end", what, err, text)
			}
		}
		scene(t, name+", held by another", func(w *world) {
			lock(w, w.client(asynclock.WithDescription("the holder")), "key")
			ends(w.T, "another client", w.client(), "asynclock: lock \"key\": waited for 1s: held by the holder with token 1", asynclock.ErrHeld)
		})
		scene(t, name+", held by this client", func(w *world) {
			c := w.client(asynclock.WithDescription("myself"))
			l := lock(w, c, "key")
			ends(w.T, "this client", c, "waited for 1s: held by myself with token 1", asynclock.ErrHeld)
			unlock(w, l)
		})
		scene(t, name+", in the grace", func(w *world) {
			c := w.clientOf(graceful(w.store, 10*time.Second))
			lock(w, w.client(), "key") // a holder that the server has forgotten
			ends(w.T, "grace", c, "grants nothing for 9s yet", asynclock.ErrGrace, asynclock.ErrUnreachable)
		})
		scene(t, name+", unreachable", func(w *world) {
			c := w.client()
			w.store.Every(asynclocktest.Any, asynclocktest.Refuse)
			ends(w.T, "refusing", c, "store unreachable", asynclock.ErrUnreachable)
		})
	}
}

// wantFutureEnds checks that a future ends with an error when WithWait says so, although it would
// have joined a lease. That lease has ended, and another has the key.
func (w *world) wantFutureEnds(wait time.Duration, want error) {
	w.Helper()
	c := w.client(asynclock.WithReentry(true))
	l := lock(w, c, "key")
	ahead := w.ask(w.Context(), c, "key")
	future := c.LockChan(context.WithoutCancel(l.Context()), "key", asynclock.WithWait(wait))
	unlock(w, l)
	held := ahead.has()
	w.pass(wait)
	if len(future) != 1 {
		w.Fatalf("after %v the future still waits, want %v", wait, want)
	}
	wantError(w, errOf((<-future).Lease()), want)
	unlock(w, held)
}

// A future under a lease that ends before the claim waits for the key. Its WithWait bounds that wait.
func TestWithWaitBoundsAFutureWhoseLeaseEnds(t *testing.T) {
	story(t, func(w *world) { w.wantFutureEnds(time.Second, context.DeadlineExceeded) })
}

// A future that does not wait does not wait either when the lease that it would have joined ends.
func TestFutureThatDoesNotWaitIsNotQueuedWhenItsLeaseEnds(t *testing.T) {
	story(t, func(w *world) { w.wantFutureEnds(0, asynclock.ErrHeld) })
}
