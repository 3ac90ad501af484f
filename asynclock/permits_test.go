// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// The rules P1 to P10 of docs/design.md.

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
func wants(s *asynclock.Semaphore, n int) acquire {
	return func(ctx context.Context, _ string, options ...asynclock.LockOption) (*asynclock.Lease, error) {
		return s.Acquire(ctx, n, options...)
	}
}

// wantUsed fails the story unless so many permits are out.
func (w *world) wantUsed(n int) {
	w.Helper()
	w.wait()
	if info := w.inspect("key"); info.Used != n {
		w.Errorf("permits that are out: got %d, want %d", info.Used, n)
	}
}

func TestPermitsAreTakenUpToTheLimit(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := semaphore(w, w.client(), 3), semaphore(w, w.client(), 3)
		one := takePermits(w, ours, 1)
		two := takePermits(w, theirs, 2)
		if one.Weight() != 1 || two.Weight() != 2 || one.Mode() != asynclock.Permits || two.Token() <= one.Token() {
			w.Errorf("got weights %d and %d, mode %v, tokens %d and %d", one.Weight(), two.Weight(), one.Mode(), one.Token(), two.Token())
		}
		_, err := ours.TryAcquire(w.Context(), 1)
		wantError(w, err, asynclock.ErrHeld)
		wantOp(w, err, "try acquire", "key")
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

// P2: one grant serves the waiters of a client in a row, as far as permits are free.
func TestOneGrantServesWaitersInARow(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := semaphore(w, w.client(), 4), semaphore(w, w.client(), 4)
		all := takePermits(w, theirs, 4)
		var waiting []*pending
		for range 5 {
			waiting = append(waiting, w.askBy(w.Context(), wants(ours, 1), "key"))
		}
		w.pass(2 * heartbeat) // a heartbeat says how many wait
		before := w.calls(asynclocktest.Acquire.Any)
		unlock(w, all)
		for _, p := range waiting[:4] {
			p.has()
		}
		waiting[4].waits()
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

// P3: a permit that comes free goes to the first waiter of the client without the store. P9: waiters whose
// client has all permits ask nobody.
func TestPermitsPassInsideAClient(t *testing.T) {
	story(t, func(w *world) {
		s := semaphore(w, w.client(), 2)
		held := []*asynclock.Lease{takePermits(w, s, 1), takePermits(w, s, 1)}
		w.pass(time.Second)
		before := w.calls(asynclocktest.Any)
		for range 300 {
			next := w.askBy(w.Context(), wants(s, 1), "key")
			unlock(w, held[0])
			held = append(held[1:], next.has())
		}
		if n := w.calls(asynclocktest.Any) - before; n != 0 {
			w.Errorf("requests for 300 permits that pass: got %d, want none", n)
		}
		unlock(w, held[0])
		unlock(w, held[1])
		w.wait()
		w.wantUnused()
	})
}

// P4: what passes to nobody is given back at once, also while others of the same grant are in use.
func TestAPartOfAGrantIsGivenBack(t *testing.T) {
	story(t, func(w *world) {
		leases := oneGrant(w, semaphore(w, w.client(), 3), semaphore(w, w.client(), 3))
		for i, l := range leases {
			w.wantUsed(3 - i)
			unlock(w, l)
		}
		w.wantUsed(0)
		w.wantCalls(asynclocktest.Release.From(0), 3)
		w.wantUnused()
	})
}

// oneGrant returns three leases of ours that one grant has served.
func oneGrant(w *world, ours, theirs *asynclock.Semaphore) (leases []*asynclock.Lease) {
	w.Helper()
	all := takePermits(w, theirs, 3)
	var waiting []*pending
	for range 3 {
		waiting = append(waiting, w.askBy(w.Context(), wants(ours, 1), "key"))
	}
	w.pass(2 * heartbeat)
	unlock(w, all)
	for _, p := range waiting {
		leases = append(leases, p.has())
	}
	if leases[0].Token() != leases[2].Token() {
		w.Fatalf("tokens of one grant: got %d and %d, want the same", leases[0].Token(), leases[2].Token())
	}
	return leases
}

// P7: permits are not retained.
func TestPermitsAreNotRetained(t *testing.T) {
	story(t, func(w *world) {
		s := semaphore(w, w.client(asynclock.WithRetention(time.Hour)), 2, asynclock.WithRetention(time.Hour))
		unlock(w, takePermits(w, s, 1))
		w.wantUnused()
		unlock(w, takePermits(w, s, 1, asynclock.WithRetention(time.Hour)))
		w.wantUnused()
		for _, c := range w.store.Calls(asynclocktest.Acquire.Any) {
			if c.Acquire.NotifyRequests {
				w.Error("a request asks to be told of others")
			}
		}
	})
}

// P8: if the first waiter leaves, the client keeps its place in the queue for what the next one wants.
func TestThePlaceStaysWhenTheFirstWaiterLeaves(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, next int
	}{{"the next wants fewer", 3, 1}, {"the next wants more", 1, 2}} {
		scene(t, c.name, func(w *world) {
			ours, theirs, late := semaphore(w, w.client(), 3), semaphore(w, w.client(), 3), semaphore(w, w.client(), 3)
			held := takePermits(w, theirs, 2)
			beside := takePermits(w, theirs, 1)
			ctx, giveUp := context.WithCancel(w.Context())
			first := w.askBy(ctx, wants(ours, c.first), "key")
			next := w.askBy(w.Context(), wants(ours, c.next), "key")
			behind := w.askBy(w.Context(), wants(late, 3), "key")
			giveUp()
			wantError(w, first.ended(), context.Canceled)
			unlock(w, held)
			l := next.has() // at once, and before the one behind
			if l.Weight() != c.next {
				w.Errorf("weight: got %d, want %d", l.Weight(), c.next)
			}
			behind.waits()
			w.wantUsed(1 + c.next)
			unlock(w, l)
			unlock(w, beside)
			unlock(w, behind.has())
		})
	}
}

// One of the leases of a client may end by itself only with all others of the same grant.
func TestALossEndsAllLeasesOfAGrant(t *testing.T) {
	story(t, func(w *world) {
		theirs := w.client()
		leases := oneGrant(w, semaphore(w, theirs, 3), semaphore(w, w.client(), 3))
		waiter := w.askBy(w.Context(), wants(semaphore(w, theirs, 3), 1), "key")
		w.force(w.client(), "key")
		for _, l := range leases {
			w.wait()
			wantError(w, l.Err(), asynclock.ErrForced)
			wantError(w, l.Unlock(w.Context()), asynclock.ErrForced)
		}
		unlock(w, waiter.has())
		w.wait()
		w.wantUnused()
	})
}
