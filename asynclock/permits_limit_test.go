// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

func setPermits(w *world, s *asynclock.Semaphore, n int) {
	w.Helper()
	if err := s.SetPermits(w.Context(), n); err != nil {
		w.Fatal(err)
	}
	w.pass(time.Millisecond) // renewals wait for each other
}

// A larger number serves waiters at once: those in the store's queue, and those of a client that had all
// permits and so had nobody to ask.
func TestMorePermitsServeWaitersAtOnce(t *testing.T) {
	story(t, func(w *world) {
		s := semaphore(w, w.client(), 2)
		held := takePermits(w, s, 2)
		local := w.askBy(w.Context(), wants(s, 1), "key")
		elsewhere := w.askBy(w.Context(), wants(semaphore(w, w.client(), 2), 1), "key")
		setPermits(w, s, 4)
		unlock(w, elsewhere.has())
		unlock(w, local.has())
		unlock(w, held)
		setPermits(w, s, 0)
		w.wait()
		w.wantUnused()
	})
}

// A smaller number takes nothing from anyone. But a client that has more permits than there are gives back
// what it gets back, also if its own callers wait.
func TestFewerPermitsTakeNothingFromAnyone(t *testing.T) {
	story(t, func(w *world) {
		s := semaphore(w, w.client(), 3)
		var held []*asynclock.Lease
		for range 3 {
			held = append(held, takePermits(w, s, 1))
		}
		var waiting []*pending
		for range 3 {
			waiting = append(waiting, w.askBy(w.Context(), wants(s, 1), "key"))
		}
		setPermits(w, s, 1)
		for _, l := range held[:2] {
			wantValid(w, l)
			unlock(w, l)
		}
		if info := w.inspect("key"); info.Used != 1 || info.Limit != 1 {
			w.Errorf("permits that are out: got %d of %d, want 1 of 1", info.Used, info.Limit)
		}
		for _, p := range waiting {
			p.waits()
		}
		unlock(w, held[2])
		for range waiting { // one after the other
			var served []*asynclock.Lease
			for _, p := range waiting {
				if l, ok := p.hasNow(); ok && l.Valid(0) {
					served = append(served, l)
				}
			}
			if len(served) != 1 {
				w.Fatalf("served at once: got %d, want 1", len(served))
			}
			unlock(w, served[0])
		}
	})
}

// A request for more permits than are left fails, and those behind it are served.
func TestARequestForMorePermitsThanThereAre(t *testing.T) {
	story(t, func(w *world) {
		s, other := semaphore(w, w.client(), 3), semaphore(w, w.client(), 3)
		_, err := s.Acquire(w.Context(), 4)
		wantError(w, err, asynclock.ErrPermits)
		wantOp(w, err, "acquire", "key")
		held := takePermits(w, s, 1)
		large := w.askBy(w.Context(), wants(other, 3), "key")
		behind := w.askBy(w.Context(), wants(s, 1), "key")
		setPermits(w, s, 2)
		wantError(w, large.ended(), asynclock.ErrPermits)
		unlock(w, behind.has())
		unlock(w, held)
		_, err = other.TryAcquire(w.Context(), 3)
		wantError(w, err, asynclock.ErrPermits)
		wantOp(w, err, "try acquire", "key")
	})
}

// churn lets callers take permits one after the other, until the returned function is called.
func churn(w *world, s *asynclock.Semaphore, callers int) (stop func()) {
	w.Helper()
	ended := make(chan struct{})
	for range callers {
		go func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				l := takePermits(w, s, 1)
				time.Sleep(time.Millisecond)
				unlock(w, l)
			}
		}()
	}
	w.pass(time.Second + time.Millisecond/2)
	return func() { close(ended); w.pass(time.Second) }
}

// A TryAcquire passes nobody who waits, here or elsewhere, although a permit is free.
func TestATryAcquirePassesNobodyWhoWaits(t *testing.T) {
	story(t, func(w *world) {
		holding, waiting, other := semaphore(w, w.client(), 3), semaphore(w, w.client(), 3), semaphore(w, w.client(), 3)
		held := takePermits(w, holding, 1)
		large := w.askBy(w.Context(), wants(waiting, 3), "key")
		for name, s := range map[string]*asynclock.Semaphore{"who holds": holding, "who waits": waiting, "another": other} {
			if l, err := s.TryAcquire(w.Context(), 1); err == nil {
				w.Errorf("TryAcquire by the client of %s: got a lease of %d permits", name, l.Weight())
			} else {
				wantError(w, err, asynclock.ErrHeld)
			}
		}
		w.wantUsed(1)
		large.waits()
		unlock(w, held)
		unlock(w, large.has())
	})
}

// Clients believe in different numbers. The smallest one counts of those who hold permits and of who asks. A request
// for more than that waits until those with smaller numbers have left. It is no request for more than there are.
func TestARequestAboveTheSmallestNumberWaits(t *testing.T) {
	story(t, func(w *world) {
		few, many := semaphore(w, w.client(), 1), semaphore(w, w.client(), 5)
		third := semaphore(w, w.client(), 5)
		one := takePermits(w, few, 1)
		large := w.askBy(w.Context(), wants(many, 3), "key")
		large.waits()
		if info := w.inspect("key"); info.Used != 1 || info.Limit != 1 {
			w.Errorf("Inspect: got %d of %d permits, want 1 of 1", info.Used, info.Limit)
		}
		unlock(w, one)
		three := large.has()
		if info := w.inspect("key"); info.Used != 3 || info.Limit != 5 {
			w.Errorf("Inspect: got %d of %d permits, want 3 of 5", info.Used, info.Limit)
		}
		modest := w.askBy(w.Context(), wants(few, 1), "key") // only with no others
		behind := w.askBy(w.Context(), wants(third, 2), "key")
		w.pass(ttl)
		modest.waits()
		behind.waits()
		unlock(w, three)
		l := modest.has()
		behind.waits()
		unlock(w, l)
		unlock(w, behind.has())
	})
}

// A request that makes no sense fails before anything is requested from the store, also under a lease of the key.
func TestSenselessPermitsCostNoRequest(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		s := semaphore(w, c, 3)
		held := takePermits(w, s, 3)
		start, before := time.Now(), w.calls(asynclocktest.Any)
		for n, want := range map[int]error{0: asynclock.ErrInvalidOption, -1: asynclock.ErrInvalidOption, 4: asynclock.ErrPermits} {
			wantError(w, errOf(s.Acquire(held.Context(), n)), want)
			wantError(w, errOf(s.TryAcquire(w.Context(), n)), want)
			wantError(w, errOf((<-s.AcquireChan(w.Context(), n)).Lease()), want)
		}
		wantError(w, errOf(c.Lock(held.Context(), "key")), asynclock.ErrUpgrade)
		wantError(w, errOf(c.TryRLock(held.Context(), "key")), asynclock.ErrUpgrade)
		wantTime(w, "the last refusal", time.Now(), start)
		if n := w.calls(asynclocktest.Any) - before; n != 0 {
			w.Errorf("requests: got %d, want none", n)
		}
		unlock(w, held)
	})
}

// A waiter that wants more permits than were set fails within a heartbeat, also if it is not told. Those behind it are
// served in the step that sets the number.
func TestAWaiterAboveTheNumberThatIsNotTold(t *testing.T) {
	story(t, func(w *world) {
		s, other, third := semaphore(w, w.client(), 3), semaphore(w, w.client(), 3), semaphore(w, w.client(), 3)
		held := takePermits(w, s, 1)
		large := w.askBy(w.Context(), wants(other, 3), "key")
		behind := w.askBy(w.Context(), wants(third, 1), "key")
		w.store.EveryEvent(asynclocktest.Kind(store.EventWake).For(1), asynclocktest.Drop)
		set := time.Now()
		if err := s.SetPermits(w.Context(), 2); err != nil {
			w.Fatal(err)
		}
		unlock(w, behind.has())
		wantTime(w, "the waiter behind", behind.at, set)
		large.waits()
		w.pass(nextHeartbeat)
		wantError(w, large.ended(), asynclock.ErrPermits)
		unlock(w, held)
	})
}

// However many a larger number serves, they are served in steps that follow each other at once.
func TestMorePermitsServeAnyNumberOfClients(t *testing.T) {
	const many = 150
	story(t, func(w *world) {
		s := semaphore(w, w.client(), many)
		setPermits(w, s, 1)
		held := takePermits(w, s, 1)
		var waiting []*pending
		for range many - 1 {
			waiting = append(waiting, w.askBy(w.Context(), wants(semaphore(w, w.client(), many), 1), "key"))
		}
		set := time.Now()
		if err := s.SetPermits(w.Context(), many); err != nil {
			w.Fatal(err)
		}
		for _, p := range waiting {
			p.has()
			wantTime(w, "a waiter", p.at, set)
		}
		w.wantUsed(many)
		for _, p := range waiting {
			unlock(w, p.has())
		}
		unlock(w, held)
		setPermits(w, s, 0)
		w.wait()
		w.wantUnused()
	})
}

// While more permits are out than there are, nothing is granted until enough was given back, by whomever.
func TestFewerPermitsThanAreOutElsewhere(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := semaphore(w, w.client(), 4), semaphore(w, w.client(), 4)
		one, three := takePermits(w, ours, 1), takePermits(w, theirs, 3)
		setPermits(w, ours, 2)
		waiter := w.askBy(w.Context(), wants(semaphore(w, w.client(), 4), 1), "key")
		w.pass(3 * ttl)
		wantValid(w, one)
		wantValid(w, three)
		unlock(w, one)
		waiter.waits() // 3 + 1 > 2
		unlock(w, three)
		unlock(w, waiter.has())
	})
}
