// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// semaphore returns the semaphore of key.
func semaphore(tb testing.TB, c *asynclock.Client, permits int, options ...asynclock.LockOption) *asynclock.Semaphore {
	tb.Helper()
	s, err := c.Semaphore("key", permits, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// takePermits takes permits that can be had.
func takePermits(tb testing.TB, s *asynclock.Semaphore, n int, options ...asynclock.LockOption) *asynclock.Lease {
	tb.Helper()
	l, err := s.Acquire(context.Background(), n, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// wants returns a call that waits for n permits.
func wants(s *asynclock.Semaphore, n int) func(context.Context, string, ...asynclock.LockOption) (*asynclock.Lease, error) {
	return func(ctx context.Context, _ string, options ...asynclock.LockOption) (*asynclock.Lease, error) {
		return s.Acquire(ctx, n, options...)
	}
}

func TestPermitsAreTakenUpToTheLimit(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := semaphore(w, w.client(), 3), semaphore(w, w.client(), 3)
		one := takePermits(w, ours, 1)
		two := takePermits(w, theirs, 2)
		if one.Weight() != 1 || two.Weight() != 2 || one.Mode() != asynclock.Permits {
			w.Errorf("weights: got %d and %d in mode %v", one.Weight(), two.Weight(), one.Mode())
		}
		_, err := ours.TryAcquire(w.Context(), 1)
		wantError(w, err, asynclock.ErrHeld)
		third := w.askBy(w.Context(), wants(ours, 1), "key")
		third.waits()
		unlock(w, two)
		l := third.has()
		unlock(w, one)
		unlock(w, l)
		w.wait()
		w.wantUnused()
	})
}

// P2: one grant serves the waiters of a client in a row.
func TestOneGrantServesWaitersInARow(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		ours, theirs := semaphore(w, c, 4), semaphore(w, w.client(), 4)
		all := takePermits(w, theirs, 4)
		var waiting []*pending
		for range 4 {
			waiting = append(waiting, w.askBy(w.Context(), wants(ours, 1), "key"))
		}
		time.Sleep(5 * time.Second) // a heartbeat says how many wait
		before := w.calls(asynclocktest.Acquire.Any)
		unlock(w, all)
		for _, p := range waiting {
			unlock(w, p.has())
		}
		if n := w.calls(asynclocktest.Acquire.Any) - before; n != 0 {
			w.Errorf("requests after the release: got %d, want none", n)
		}
		w.wait()
		w.wantUnused()
	})
}
