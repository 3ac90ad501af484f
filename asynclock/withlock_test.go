// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

func TestWithLockHoldsTheKeyWhileTheFunctionRuns(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		var p *pending
		err := c.WithLock(w.Context(), "key", func(ctx context.Context, l *asynclock.Lease) error {
			p = w.ask(w.Context(), other, "key")
			w.pass(10 * ttl)
			p.waits()
			wantValid(w, l)
			return ctx.Err()
		})
		if err != nil {
			w.Errorf("got error %v, want none", err)
		}
		unlock(w, p.has())
		w.wantUnused()
	})
}

func TestDoReturnsWhatTheFunctionDoes(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		failed := errors.New("failed")
		for _, want := range []error{nil, failed} {
			got, err := asynclock.Do(w.Context(), c, "key", func(context.Context, *asynclock.Lease) (int, error) {
				return 42, want
			})
			if got != 42 || !errors.Is(err, want) {
				w.Errorf("got %v, %v; want 42, %v", got, err, want)
			}
			w.wantUnused()
		}
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		got, err := asynclock.Do(ctx, c, "key", func(context.Context, *asynclock.Lease) (int, error) {
			w.Error("called without the key")
			return 42, nil
		})
		wantError(w, err, context.Canceled)
		wantOp(w, err, "lock", "key")
		if got != 0 {
			w.Errorf("got %d without the key, want 0", got)
		}
	})
}

// Options are those of Lock.
func TestWithLockTakesOptions(t *testing.T) {
	story(t, func(w *world) {
		err := w.client().WithLock(w.Context(), "key", func(context.Context, *asynclock.Lease) error {
			if got := w.inspect("key").Holder; got != "me" {
				w.Errorf("holder: got %q, want %q", got, "me")
			}
			return nil
		}, asynclock.WithDescription("me"))
		if err != nil {
			w.Error(err)
		}
		err = w.client().WithLock(w.Context(), "key", nil, asynclock.WithTTL(0))
		wantError(w, err, asynclock.ErrInvalidOption)
	})
}

func TestWithLockUnlocksWhenTheFunctionPanics(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		func() {
			defer func() {
				if got := recover(); got != "out" {
					w.Errorf("recovered %v, want the function's panic", got)
				}
			}()
			_ = c.WithLock(w.Context(), "key", func(context.Context, *asynclock.Lease) error { panic("out") })
		}()
		w.wantUnused()
	})
}

func TestWithLockUnlocksWhenTheFunctionEndsItsGoroutine(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.WithLock(w.Context(), "key", func(context.Context, *asynclock.Lease) error {
				runtime.Goexit()
				return nil
			})
		}()
		<-done
		w.wantUnused()
	})
}

// The function's context ends with the lease, and says why; the loss is told
// even if the function does not mind.
func TestWithLockReportsALoss(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		name string
		err  error // of the function
	}{{"the function fails", failed}, {"the function does not mind", nil}, {"the function returns it", asynclock.ErrExpired}} {
		scene(t, c.name, func(w *world) {
			client := w.client()
			err := client.WithLock(w.Context(), "key", func(ctx context.Context, l *asynclock.Lease) error {
				<-ctx.Done()
				wantError(w, context.Cause(ctx), asynclock.ErrExpired)
				wantLost(w, l, asynclock.ErrExpired)
				return c.err
			}, asynclock.WithRenewal(false))
			wantError(w, err, asynclock.ErrExpired, asynclock.ErrLost)
			if c.err != nil {
				wantError(w, err, c.err)
			}
			if n := strings.Count(err.Error(), "lease lost"); n != 1 {
				w.Errorf("got %q, which says %d times that the lease is lost, want once", err, n)
			}
			w.wait()
			w.wantUnused()
		})
	}
}

// A loss that nobody has noticed before is found by Unlock.
func TestWithLockReportsALossThatTheStoreKnowsOf(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
		got, err := asynclock.Do(w.Context(), c, "key", func(context.Context, *asynclock.Lease) (int, error) {
			_, err := w.session().Force(w.Context(), "key", 0)
			return 42, err
		})
		wantError(w, err, asynclock.ErrLost)
		if got != 42 {
			w.Errorf("got %d, want what the function returned beside the error", got)
		}
	})
}

// The function's context also ends with the caller's, for the caller's reason,
// which does not end the lease.
func TestWithLockEndsWithTheCallersContext(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(w.Context())
		err := c.WithLock(ctx, "key", func(ctx context.Context, l *asynclock.Lease) error {
			cancel(reason)
			<-ctx.Done()
			wantValid(w, l)
			return context.Cause(ctx)
		})
		wantError(w, err, reason)
		w.wantUnused()
	})
}

// Asking for the same key inside joins the lease; the function's context is the
// work's.
func TestWithLockIsReentrant(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		err := c.WithLock(w.Context(), "key", func(ctx context.Context, outer *asynclock.Lease) error {
			return c.WithLock(ctx, "key", func(ctx context.Context, inner *asynclock.Lease) error {
				if inner.Token() != outer.Token() {
					w.Errorf("got token %d inside, want %d", inner.Token(), outer.Token())
				}
				unlock(w, outer)
				wantValid(w, inner)
				return ctx.Err()
			})
		})
		wantError(w, err, context.Canceled) // outer's context has ended with it, and so has inner's
		w.wantUnused()
	})
}

// A lease that the function itself has unlocked is no loss.
func TestFunctionMayUnlockItself(t *testing.T) {
	story(t, func(w *world) {
		err := w.client().WithLock(w.Context(), "key", func(ctx context.Context, l *asynclock.Lease) error {
			unlock(w, l)
			wantError(w, context.Cause(ctx), asynclock.ErrUnlocked)
			return nil
		})
		if err != nil {
			w.Errorf("got error %v, want none", err)
		}
		w.wantUnused()
	})
}

// The work was covered: that the store can't be told of its end is not the
// work's failure.
func TestWithLockDoesNotReportAReleaseThatWasNotAnswered(t *testing.T) {
	story(t, func(w *world) {
		w.store.Every(asynclocktest.Release.On("key"), asynclocktest.Hang)
		before := time.Now()
		err := w.client().WithLock(w.Context(), "key", func(context.Context, *asynclock.Lease) error { return nil })
		if err != nil {
			w.Errorf("got error %v, want none", err)
		}
		if took := time.Since(before); took > 11*time.Second {
			w.Errorf("took %v, want no longer than Unlock may", took)
		}
	})
}

// The context that the function was given ends when the function returns.
func TestContextOfTheFunctionEndsWithIt(t *testing.T) {
	story(t, func(w *world) {
		var kept context.Context
		err := w.client().WithLock(w.Context(), "key", func(ctx context.Context, _ *asynclock.Lease) error {
			kept = ctx
			return nil
		})
		if err != nil || kept.Err() == nil {
			w.Errorf("got error %v and a context with error %v, want an ended one", err, kept.Err())
		}
	})
}

// The grant and the end of the context may come together. Then the function is not called, because its caller may have
// gone.
func TestWithLockCallsNobodyAfterTheEndOfTheContext(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		for range 20 { // Lock has its choice
			ctx, cancel := context.WithCancel(w.Context())
			w.store.Next(asynclocktest.Acquire.On("key"), func(_ context.Context, carry func()) error {
				carry()
				cancel()
				return nil
			})
			called := func(context.Context, *asynclock.Lease) error { w.Error("called"); return nil }
			err := c.WithLock(ctx, "key", called, asynclock.WithRetention(0))
			wantError(w, err, context.Canceled)
			wantOp(w, err, "lock", "key")
			err = c.WithLockAll(ctx, []string{"key"}, func(context.Context, *asynclock.MultiLease) error { return called(nil, nil) })
			wantError(w, err, context.Canceled)
			w.pass(ttl)
			w.wantUnused()
		}
	})
}
