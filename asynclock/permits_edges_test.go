// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
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
		wantError(w, errOf(c.Lock(under, "key")), asynclock.ErrUpgrade)
		wantError(w, errOf(c.RLock(under, "key")), asynclock.ErrUpgrade)
		wantError(w, errOf(c.LockAll(under, []string{"key", "other"})), asynclock.ErrUpgrade)
		more, err := s.TryAcquire(under, 2)
		wantError(w, err, nil)
		w.wantUsed(3)
		unlock(w, more)
		unlock(w, permit)

		writer := lock(w, c, "key")
		wantError(w, errOf(s.Acquire(writer.Context(), 1)), asynclock.ErrUpgrade)
		unlock(w, writer)
		reader := rlock(w, c, "key")
		wantError(w, errOf((<-s.AcquireChan(reader.Context(), 1)).Lease()), asynclock.ErrUpgrade)
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
		wantError(w, errOf(c.Semaphore("", 1)), asynclock.ErrInvalidKey)
		_, err := c.Semaphore("key", 1, nil)
		wantError(w, err, asynclock.ErrInvalidOption)
		s := semaphore(w, c, 3)
		for _, n := range []int{0, -1, math.MinInt} {
			wantError(w, errOf(s.Acquire(w.Context(), n)), asynclock.ErrInvalidOption)
			_, err = (<-s.AcquireChan(w.Context(), n)).Lease()
			wantError(w, err, asynclock.ErrInvalidOption)
			wantOp(w, err, "acquire", "key")
		}
		for _, n := range []int{4, math.MaxInt32 + 1, math.MaxInt} {
			wantError(w, errOf(s.TryAcquire(w.Context(), n)), asynclock.ErrPermits)
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
			wantError(w, errOf(s.Acquire(w.Context(), 1)), asynclock.ErrInvalidOption)
			wantError(w, errOf(s.TryAcquire(w.Context(), 1)), asynclock.ErrInvalidOption)
			wantError(w, errOf((<-s.AcquireChan(w.Context(), 1)).Lease()), asynclock.ErrInvalidOption)
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
		wantError(w, errOf((<-future).Lease()), asynclock.ErrClosed)
		wantError(w, held.Err(), asynclock.ErrClosed)
		wantError(w, errOf(s.Acquire(w.Context(), 1)), asynclock.ErrClosed)
		wantError(w, s.SetPermits(w.Context(), 1), asynclock.ErrClosed)
		wantError(w, errOf(c.Semaphore("key", 1)), asynclock.ErrClosed)
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
		wantError(w, errOf((<-first).Lease()), context.Canceled)
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
		wantError(w, errOf(theirs.TryAcquire(w.Context(), 1)), asynclock.ErrHeld)
		unlock(w, reader)
	})
}

// A client that believes in fewer permits is never beside more than that.
func TestTheSmallestNumberOfPermitsCounts(t *testing.T) {
	story(t, func(w *world) {
		few, many := semaphore(w, w.client(), 1), semaphore(w, w.client(), 5)
		one := takePermits(w, few, 1)
		wantError(w, errOf(many.TryAcquire(w.Context(), 1)), asynclock.ErrHeld)
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
		wantError(w, errOf(c.Semaphore("key", 1)), asynclock.ErrUnsupported)
		unlimited := w.clientOf(without(w.store, func(f *store.Features) { f.Limits = false }))
		s := semaphore(w, unlimited, 1)
		wantError(w, s.SetPermits(w.Context(), 1), asynclock.ErrUnsupported)
		w.wantCalls(asynclocktest.Any, 0)
	})
}

// A refused request for permits says how many are taken, and not only who has some.
func TestARefusalSaysHowManyPermitsAreTaken(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		ours, theirs, third := semaphore(w, w.client(asynclock.WithDescription("host 7")), 3), semaphore(w, w.client(), 3), semaphore(w, c, 3)
		refused := func(n int, used int, text string) {
			w.Helper()
			_, err := third.TryAcquire(w.Context(), n)
			wantPermitsTaken(w, err, used, text)
		}
		one := takePermits(w, ours, 1)
		refused(3, 1, `asynclock: try acquire "key": 1 of 3 permits is taken (host 7)`)
		two := takePermits(w, theirs, 2)
		refused(1, 3, `asynclock: try acquire "key": all 3 permits are taken (2 holders of 3 permits)`)

		_, err := third.Acquire(w.Context(), 1, asynclock.WithWait(time.Second)) // which ends a wait
		wantError(w, err, context.DeadlineExceeded)
		wantPermitsTaken(w, err, 3, `asynclock: acquire "key": waited for 1s: `+
			`all 3 permits are taken (2 holders of 3 permits), 1 waiting`)

		w.pass(time.Second) // it has left the queue
		waits := w.askBy(w.Context(), wants(third, 1), "key")
		waits.waits()
		refused(1, 3, `asynclock: try acquire "key": all 3 permits are taken (2 holders of 3 permits), 1 waiting`) // as the client knows
		var who *asynclock.HeldError
		_, err = c.TryLock(w.Context(), "key")
		if !errors.As(err, &who) || who.Used != 0 || who.Limit != 0 {
			w.Errorf("a TryLock: got %#v, want nothing said of permits", err)
		}
		unlock(w, one)
		unlock(w, two)
		unlock(w, waits.has())

		held := lock(w, w.client(asynclock.WithDescription("host 8")), "key")
		_, err = third.TryAcquire(w.Context(), 1)
		if !errors.As(err, &who) || who.Used != 0 || who.Limit != 3 || who.Holder != "host 8" || who.Token != held.Token() {
			w.Errorf("beside a Lock: got %#v, want it held by host 8, and no permit out of 3", err)
		}
	})
}

// Inspect says whose permits are out, also to a client that got some before another did.
func TestInspectKnowsWhoHoldsPermits(t *testing.T) {
	story(t, func(w *world) {
		first, second, none := w.client(), w.client(), w.client()
		early, late := takePermits(w, semaphore(w, first, 3), 1), takePermits(w, semaphore(w, second, 3), 1)
		for c, mine := range map[*asynclock.Client]bool{first: true, second: true, none: false} {
			if info, err := c.Inspect(w.Context(), "key"); err != nil || info.Mine != mine {
				w.Errorf("Inspect: got %+v, %v; want mine %v", info, err, mine)
			}
		}
		unlock(w, early)
		w.wait()
		if info, err := first.Inspect(w.Context(), "key"); err != nil || info.Mine {
			w.Errorf("after the end: got %+v, %v; want mine false", info, err)
		}
		unlock(w, late)
	})
}

func wantPermitsTaken(w *world, err error, used int, text string) {
	w.Helper()
	var held *asynclock.HeldError
	if !errors.As(err, &held) || held.Used != used || held.Limit != 3 {
		w.Errorf("got error %#v, want %d of 3 permits taken", err, used)
	}
	if err == nil || err.Error() != text {
		w.Errorf("got %q, want %q", err, text)
	}
}

// The permits that a client has one by one are renewed together, and each goes on.
func TestManyPermitsOfAKeyAreRenewed(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		s := semaphore(w, c, 70)
		var leases []*asynclock.Lease
		for range 70 {
			leases = append(leases, takePermits(w, s, 1))
		}
		for range 3 { // of one call
			w.store.Next(asynclocktest.Renew.On("key"), asynclocktest.Refuse)
		}
		time.Sleep(time.Minute)
		for i, l := range leases {
			if err := l.Err(); err != nil {
				w.Errorf("permit %d: got %v, want it to last", i, err)
			}
		}
		if got := c.Stats().Renewals; got.Done < 4*70 || got.Failed != 3 {
			w.Errorf("renewals: got %+v, want at least 280, and three to fail", got)
		}
		for _, l := range leases {
			unlock(w, l)
		}
	})
}
