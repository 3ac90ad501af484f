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
// permits and so had nobody to ask. A client that is not notified finds out by a renewal.
func TestMorePermitsServeWaitersAtOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault asynclocktest.EventFault
		after time.Duration
	}{
		{"notified", nil, 0},
		{"the notification is lost", asynclocktest.Drop, 5 * time.Second},
	} {
		scene(t, c.name, func(w *world) {
			if c.fault != nil {
				w.store.EveryEvent(asynclocktest.Kind(store.EventWake), c.fault)
			}
			one := w.client()
			s := semaphore(w, one, 2)
			held := takePermits(w, s, 2)
			local := w.askBy(w.Context(), wants(s, 1), "key")
			elsewhere := w.askBy(w.Context(), wants(semaphore(w, w.client(), 2), 1), "key")
			setPermits(w, s, 4)
			unlock(w, elsewhere.has())
			w.pass(c.after)
			unlock(w, local.has())
			unlock(w, held)
			setPermits(w, s, 0)
			w.wait()
			w.wantUnused()
		})
	}
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

// A message that grants permits does not say how many there are. If there are fewer soon after, the renewal
// says as many as before the grant, because the notification of the larger number was lost.
func TestFewerPermitsSoonAfterAGrantByMessage(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := semaphore(w, w.client(), 2), semaphore(w, w.client(), 2)
		setPermits(w, ours, 2)
		held := takePermits(w, theirs, 2)
		stop := churn(w, ours, 5)
		w.pass(6 * time.Second) // it waits
		goOn := w.store.EveryEvent(asynclocktest.Kind(store.EventWake), asynclocktest.Drop)
		setPermits(w, theirs, 4)
		goOn()
		if used := w.inspect("key").Used; used != 4 {
			w.Errorf("permits that are out: got %d, want 4", used)
		}
		setPermits(w, theirs, 2)
		w.pass(6 * time.Second)
		if used := w.inspect("key").Used; used > 2 {
			w.Errorf("permits that are out: got %d of 2", used)
		}
		unlock(w, held)
		stop()
		setPermits(w, ours, 0)
		w.wait()
		w.wantUnused()
	})
}

// A smaller number counts also if no client alone has more permits than that.
func TestFewerPermitsCountForAllClientsTogether(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := semaphore(w, w.client(), 4), semaphore(w, w.client(), 4)
		held := takePermits(w, theirs, 2)
		stop := churn(w, ours, 5)
		setPermits(w, ours, 2)
		w.pass(6 * time.Second)
		if used := w.inspect("key").Used; used > 2 {
			w.Errorf("permits that are out: got %d of 2", used)
		}
		unlock(w, held)
		stop()
		setPermits(w, ours, 0)
		w.wait()
		w.wantUnused()
	})
}
