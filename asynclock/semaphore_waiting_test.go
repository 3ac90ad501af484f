// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// P9: a client that has all permits asks the store for nobody. A try is refused all the same.
func TestATryIsRefusedBehindLocalWaiters(t *testing.T) {
	for _, c := range []struct {
		name string
		try  func(*asynclock.Client) acquire
	}{
		{"a reader", func(c *asynclock.Client) acquire { return c.TryRLock }},
		{"permits of more", func(c *asynclock.Client) acquire {
			return func(ctx context.Context, key string, options ...asynclock.LockOption) (*asynclock.Lease, error) {
				s, err := c.Semaphore(key, 5)
				if err != nil {
					return nil, err
				}
				return s.TryAcquire(ctx, 1, options...)
			}
		}},
	} {
		scene(t, c.name, func(w *world) {
			client := w.client()
			s := semaphore(w, client, 1)
			held := takePermits(w, s, 1)
			behind := w.askBy(w.Context(), wants(s, 1), "key")
			behind.waits()
			wantError(w, w.askBy(w.Context(), c.try(client), "key").ended(), asynclock.ErrHeld)
			unlock(w, held)
			unlock(w, behind.has())
		})
	}
}

// A client whose leases are not renewed can't learn of more permits by a renewal, so its waiters ask.
func TestMorePermitsServeWaitersBehindLeasesWithoutRenewal(t *testing.T) {
	for _, c := range []struct {
		name   string
		option asynclock.LockOption
	}{
		{"without renewal", asynclock.WithRenewal(false)},
		{"with a maximum hold", asynclock.WithMaxHold(10 * time.Second)},
	} {
		scene(t, c.name, func(w *world) {
			s := semaphore(w, w.client(), 1, c.option)
			takePermits(w, s, 1)
			w.wait()
			local := w.askBy(w.Context(), wants(s, 1), "key")
			local.waits()
			setPermits(w, s, 2)
			w.pass(heartbeat + heartbeat/2)
			local.has()
		})
	}
}

// A request for more permits than are left fails, also if its client has all permits and asks nobody.
func TestALocalWaiterForMorePermitsThanThereAre(t *testing.T) {
	story(t, func(w *world) {
		s := semaphore(w, w.client(), 3)
		held := takePermits(w, s, 3)
		large := w.askBy(w.Context(), wants(s, 3), "key")
		setPermits(w, s, 2)
		wantError(w, large.ended(), asynclock.ErrPermits)
		unlock(w, held)
	})
}

// The notification of a new limit counts also while a renewal is under way, which may have been answered
// before.
func TestMorePermitsWhileARenewalIsUnderWay(t *testing.T) {
	story(t, func(w *world) {
		s := semaphore(w, w.client(), 1)
		held := takePermits(w, s, 1)
		local := w.askBy(w.Context(), wants(s, 1), "key")
		w.store.Every(asynclocktest.Renew.Any, asynclocktest.Slow(0, 100*time.Millisecond))
		for w.calls(asynclocktest.Renew.Any) == 0 {
			w.pass(time.Millisecond)
		}
		setPermits(w, s, 2)
		w.pass(time.Second)
		unlock(w, local.has())
		unlock(w, held)
	})
}

// The waiter that comes to be the first of its client has its place in the store's queue from then on.
func TestTheNextWaiterQueuesInTheStore(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world, cancel func(), held *asynclock.Lease, first *pending)
	}{
		{"the first was served", func(w *world, _ func(), held *asynclock.Lease, first *pending) {
			unlock(w, held)
			first.has()
		}},
		{"the first has left", func(w *world, cancel func(), _ *asynclock.Lease, first *pending) {
			cancel()
			wantError(w, first.ended(), context.Canceled)
		}},
	} {
		scene(t, c.name, func(w *world) {
			client := w.client()
			s := semaphore(w, client, 1)
			held := takePermits(w, s, 1)
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			first := w.askBy(ctx, wants(s, 1), "key")
			writer := w.ask(w.Context(), client, "key")
			c.end(w, cancel, held, first)
			w.wait()
			if n := w.inspect("key").Waiters; n != 1 {
				w.Errorf("waiters in the store: got %d, want the writer", n)
			}
			writer.waits()
		})
	}
}

// An Unlock whose answer was lost is no loss, if the block of its permits has ended when it is repeated.
func TestAnUnlockWhoseAnswerWasLostIsNoLoss(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		other := takePermits(w, semaphore(w, w.client(), 2), 2)
		s := semaphore(w, c, 2)
		a, b := w.askBy(w.Context(), wants(s, 1), "key"), w.askBy(w.Context(), wants(s, 1), "key")
		w.pass(2 * heartbeat)
		unlock(w, other)
		one, two := a.has(), b.has()
		w.store.Every(asynclocktest.Release.Any, asynclocktest.LoseReply)
		answer := one.UnlockChan(w.Context())
		w.wait()
		w.store.Every(asynclocktest.Release.Any, asynclocktest.Refuse)
		w.store.Every(asynclocktest.Renew.Any, asynclocktest.Refuse)
		w.pass(ttl)
		wantError(w, two.Err(), asynclock.ErrLost)
		w.store.Every(asynclocktest.Release.Any, nil)
		if err := <-answer; err != nil {
			w.Errorf("the unlock of a lease that was trusted: got %v", err)
		}
	})
}

// If the notification is lost that another client waits, permits pass on no longer than a key does.
func TestPermitsAreGivenOnIfTheNotificationIsLost(t *testing.T) {
	story(t, func(w *world) {
		w.store.EveryEvent(asynclocktest.Kind(store.EventQueued), asynclocktest.Drop)
		ours, theirs := semaphore(w, w.client(), 1), semaphore(w, w.client(), 1)
		stop := churn(w, ours, 2)
		before := time.Now()
		l := takePermits(w, theirs, 1)
		if took := time.Since(before); took > 200*time.Millisecond {
			w.Errorf("another client waited for %v", took)
		}
		unlock(w, l)
		stop()
	})
}

// A waiter of a client that has many permits costs a request, not a renewal of each of them.
func TestAWaiterCostsNoRenewals(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := semaphore(w, w.client(), 40), semaphore(w, w.client(), 40)
		for range 20 {
			takePermits(w, ours, 1)
		}
		held := takePermits(w, theirs, 20)
		w.wait()
		before := w.calls(asynclocktest.Renew.Any)
		for range 10 {
			ctx, cancel := context.WithCancel(w.Context())
			p := w.askBy(ctx, wants(ours, 1), "key")
			p.waits()
			cancel()
			wantError(w, p.ended(), context.Canceled)
			w.pass(time.Millisecond)
		}
		if n := w.calls(asynclocktest.Renew.Any) - before; n > 20 {
			w.Errorf("renewals for ten waiters: got %d", n)
		}
		unlock(w, held)
	})
}

// A limit that counted only as long as others had permits does not keep permits from passing on.
func TestPermitsPassOnAfterASmallerLimitHasGone(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := semaphore(w, w.client(), 4), semaphore(w, w.client(), 1)
		held := takePermits(w, theirs, 1)
		var waiting []*pending
		for range 5 {
			waiting = append(waiting, w.askBy(w.Context(), wants(ours, 1), "key"))
		}
		w.pass(2 * heartbeat)
		unlock(w, held)
		w.wait()
		before := w.calls(asynclocktest.Release.Any)
		unlock(w, waiting[0].has())
		waiting[4].has()
		if n := w.calls(asynclocktest.Release.Any) - before; n != 0 {
			w.Errorf("releases: got %d, want the permit to pass on", n)
		}
	})
}

// Another client waits for the bounds of a handoff and for the question about it, also behind the place of
// the client that passes permits on.
func TestNobodyStarvesBehindAClientThatPassesPermitsOn(t *testing.T) {
	story(t, func(w *world) {
		third := takePermits(w, semaphore(w, w.client(), 8), 4)
		stop := churn(w, semaphore(w, w.client(), 8), 12)
		theirs := semaphore(w, w.client(), 8)
		for range 30 {
			before := time.Now()
			l := takePermits(w, theirs, 1)
			if took := time.Since(before); took > 200*time.Millisecond {
				w.Errorf("another client waited for %v", took)
			}
			time.Sleep(time.Millisecond)
			unlock(w, l)
			time.Sleep(30 * time.Millisecond)
		}
		unlock(w, third)
		stop()
	})
}
