// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

func TestReentryOfPermits(t *testing.T) {
	bothWays(t, func(w *world, reentry asynclock.LockOption) {
		c := w.client(reentry)
		s := semaphore(w, c, 3)
		permit := takePermits(w, s, 1)
		under := permit.Context()
		_, err := c.Lock(under, "key")
		wantError(w, err, asynclock.ErrUpgrade)
		_, err = c.RLock(under, "key")
		wantError(w, err, asynclock.ErrUpgrade)
		_, err = c.LockAll(under, []string{"key", "other"})
		wantError(w, err, asynclock.ErrUpgrade)
		more, err := s.TryAcquire(under, 2)
		wantError(w, err, nil)
		w.wantUsed(3)
		unlock(w, more)
		unlock(w, permit)

		writer := lock(w, c, "key")
		_, err = s.Acquire(writer.Context(), 1)
		wantError(w, err, asynclock.ErrUpgrade)
		unlock(w, writer)
		reader := rlock(w, c, "key")
		_, err = (<-s.AcquireChan(reader.Context(), 1)).Lease()
		wantError(w, err, asynclock.ErrUpgrade)
		unlock(w, reader)
		w.wait()
		w.wantUnused()
	})
}

func TestPermitsThatMakeNoSense(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		for _, permits := range []int{0, -1, math.MinInt, asynclock.MaxPermits + 1, math.MaxInt} {
			_, err := c.Semaphore("key", permits)
			wantError(w, err, asynclock.ErrInvalidOption)
			wantOp(w, err, "semaphore", "key")
		}
		_, err := c.Semaphore("", 1)
		wantError(w, err, asynclock.ErrInvalidKey)
		_, err = c.Semaphore("key", 1, nil)
		wantError(w, err, asynclock.ErrInvalidOption)
		s := semaphore(w, c, 3)
		for _, n := range []int{0, -1, math.MinInt} {
			_, err := s.Acquire(w.Context(), n)
			wantError(w, err, asynclock.ErrInvalidOption)
			_, err = (<-s.AcquireChan(w.Context(), n)).Lease()
			wantError(w, err, asynclock.ErrInvalidOption)
			wantOp(w, err, "acquire", "key")
		}
		for _, n := range []int{4, math.MaxInt32 + 1, math.MaxInt} {
			_, err := s.TryAcquire(w.Context(), n)
			wantError(w, err, asynclock.ErrPermits)
		}
		for _, n := range []int{-1, math.MinInt, asynclock.MaxPermits + 1, math.MaxInt} {
			wantError(w, s.SetPermits(w.Context(), n), asynclock.ErrInvalidOption)
		}
		wantError(w, s.With(w.Context(), 1, nil), asynclock.ErrInvalidOption)
		//lint:ignore SA1012 it is what the test is about
		_, err = s.Acquire(nil, 1) //nolint:staticcheck // likewise
		wantError(w, err, asynclock.ErrInvalidOption)
		w.wantUnused()
	})
}

func TestASemaphoreThatNobodyMade(t *testing.T) {
	story(t, func(w *world) {
		for _, s := range []*asynclock.Semaphore{nil, {}} {
			_, err := s.Acquire(w.Context(), 1)
			wantError(w, err, asynclock.ErrInvalidOption)
			_, err = s.TryAcquire(w.Context(), 1)
			wantError(w, err, asynclock.ErrInvalidOption)
			_, err = (<-s.AcquireChan(w.Context(), 1)).Lease()
			wantError(w, err, asynclock.ErrInvalidOption)
			wantError(w, s.SetPermits(w.Context(), 1), asynclock.ErrInvalidOption)
			wantError(w, s.With(w.Context(), 1, func(context.Context, *asynclock.Lease) error { return nil }), asynclock.ErrInvalidOption)
			if key := s.Key(); key != "" {
				w.Errorf("Key: got %q, want none", key)
			}
		}
	})
}

func TestASemaphoreOfAClosedClient(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		s := semaphore(w, c, 1)
		held := takePermits(w, s, 1)
		waiter := w.askBy(w.Context(), wants(s, 1), "key")
		future := s.AcquireChan(w.Context(), 1)
		abandon(c)
		wantError(w, waiter.ended(), asynclock.ErrClosed)
		_, err := (<-future).Lease()
		wantError(w, err, asynclock.ErrClosed)
		wantError(w, held.Err(), asynclock.ErrClosed)
		_, err = s.Acquire(w.Context(), 1)
		wantError(w, err, asynclock.ErrClosed)
		wantError(w, s.SetPermits(w.Context(), 1), asynclock.ErrClosed)
		_, err = c.Semaphore("key", 1)
		wantError(w, err, asynclock.ErrClosed)
	})
}

// Permits that nobody has received go to who wants them, here at once and elsewhere after the patience. The futures
// have them later.
func TestPermitsThatNobodyReceives(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		s, theirs := semaphore(w, c, 2), semaphore(w, w.client(), 2)
		held := takePermits(w, s, 1)
		ctx, giveUp := context.WithCancel(w.Context())
		first := s.AcquireChan(ctx, 1)
		w.wait()
		second := s.AcquireChan(w.Context(), 1)
		w.wait()
		unlock(w, held)
		w.pass(10 * ttl)
		for _, from := range []*asynclock.Semaphore{s, theirs} {
			start := time.Now()
			l := w.askBy(w.Context(), wants(from, 2), "key").get()
			if waited := time.Since(start); waited > 0 {
				w.Errorf("waited for %v for what nobody has received", waited)
			}
			unlock(w, l)
			w.pass(250 * time.Millisecond)
		}
		giveUp()
		w.wait()
		_, err := (<-first).Lease()
		wantError(w, err, context.Canceled)
		unlock(w, claim(w, second))
		w.wantUnused()
	})
}

// A Lock of the key waits until all permits are back, and then has it alone.
func TestLockWaitsForAllPermits(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		s, theirs := semaphore(w, c, 2), semaphore(w, w.client(), 2)
		one, other := takePermits(w, s, 1), takePermits(w, theirs, 1)
		writer := w.ask(w.Context(), c, "key")
		late := w.askBy(w.Context(), wants(s, 1), "key")
		unlock(w, one)
		writer.waits()
		late.waits()
		unlock(w, other)
		l := writer.has()
		late.waits()
		unlock(w, l)
		unlock(w, late.has())
		reader := rlock(w, c, "key")
		_, err := theirs.TryAcquire(w.Context(), 1)
		wantError(w, err, asynclock.ErrHeld)
		unlock(w, reader)
	})
}

// A client that believes in fewer permits is never beside more than that.
func TestTheSmallestNumberOfPermitsCounts(t *testing.T) {
	story(t, func(w *world) {
		few, many := semaphore(w, w.client(), 1), semaphore(w, w.client(), 5)
		one := takePermits(w, few, 1)
		_, err := many.TryAcquire(w.Context(), 1)
		wantError(w, err, asynclock.ErrHeld)
		unlock(w, one)
		beside := takePermits(w, many, 1)
		waiter := w.askBy(w.Context(), wants(few, 1), "key")
		waiter.waits()
		unlock(w, beside)
		unlock(w, waiter.has())
	})
}

// WithMinHold limits how often uses begin.
func TestPermitsAreARateLimit(t *testing.T) {
	story(t, func(w *world) {
		s := semaphore(w, w.client(), 2, asynclock.WithMinHold(time.Second))
		start := time.Now()
		for range 10 {
			unlock(w, takePermits(w, s, 1))
		}
		if took := time.Since(start); took < 4*time.Second || took > 5*time.Second {
			w.Errorf("ten uses, two per second: took %v, want some more than 4s", took)
		}
	})
}

// Each call with its function's error and value.
func TestWithPermits(t *testing.T) {
	story(t, func(w *world) {
		s := semaphore(w, w.client(), 2)
		err := s.With(w.Context(), 2, func(ctx context.Context, l *asynclock.Lease) error {
			w.wantUsed(2)
			if in, ok := asynclock.LeaseFrom(ctx, "key"); !ok || in != l || l.Weight() != 2 {
				w.Errorf("the lease of the context: got %v, %t", in, ok)
			}
			return context.Canceled
		})
		wantError(w, err, context.Canceled)
		w.wantUnused()
	})
}

func TestAStoreWithoutPermits(t *testing.T) {
	story(t, func(w *world) {
		c := w.clientOf(without(w.store, func(f *store.Features) { f.Permits, f.Limits = false, false }))
		_, err := c.Semaphore("key", 1)
		wantError(w, err, asynclock.ErrUnsupported)
		unlimited := w.clientOf(without(w.store, func(f *store.Features) { f.Limits = false }))
		s := semaphore(w, unlimited, 1)
		wantError(w, s.SetPermits(w.Context(), 1), asynclock.ErrUnsupported)
		w.wantCalls(asynclocktest.Any, 0)
	})
}
