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

// A client that has all permits itself asks nobody.
func TestARefusalByOnesOwnClientSaysHowManyPermitsAreTaken(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithDescription("host 7"))
		s := semaphore(w, c, 3)
		one, two := takePermits(w, s, 1), takePermits(w, s, 2)
		before := w.calls(asynclocktest.Any)
		_, err := s.TryAcquire(w.Context(), 1)
		wantPermitsTaken(w, err, 3, `asynclock: try acquire "key": all 3 permits are taken (host 7)`)
		var held *asynclock.HeldError
		if !errors.As(err, &held) || held.Token != two.Token() {
			w.Errorf("got %#v, want the token of the newest permits, %d", err, two.Token())
		}
		_, err = s.Acquire(w.Context(), 1, asynclock.WithWait(time.Second))
		wantPermitsTaken(w, err, 3, `asynclock: acquire "key": waited for 1s: all 3 permits are taken (host 7)`)
		if got := w.calls(asynclocktest.Any); got != before {
			w.Errorf("the store was asked %d times, want never: the client knows", got-before)
		}

		waits := w.askBy(w.Context(), wants(s, 1), "key")
		waits.waits()
		_, err = c.TryLock(w.Context(), "key")
		if !errors.As(err, &held) || held.Used != 0 || held.Limit != 0 || held.Holder != "host 7" {
			w.Errorf("a TryLock: got %#v, want it held by host 7", err)
		}
		unlock(w, one)
		unlock(w, two)
		unlock(w, waits.has())
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
