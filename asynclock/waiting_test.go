// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// W1: a grant message that overtakes the reply to the first request finds its
// waiter, and is trusted from that request.
func TestGrantMessageMayComeBeforeTheFirstReply(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(0, callTimeout*3/4))
		asked := time.Now()
		future := waiter.LockChan(w.Context(), "key")
		w.pass(callTimeout / 2)
		unlock(w, held)
		w.wait()
		if len(future) != 1 {
			w.Fatal("the future is pending, want it granted by the message")
		}
		l := claim(w, future)
		wantTime(w, "trust deadline", l.Deadline(), asked.Add(trusted(grantTTL)))
		w.pass(callTimeout) // the reply says that the waiter has to wait
		wantValid(w, l)
		unlock(w, l)
	})
}

// W2, W3: however slow the network, trust is counted from when the request was
// sent that the store has answered, never from the answer.
func TestTrustIsCountedFromTheRequestNotTheReply(t *testing.T) {
	const slow = callTimeout * 9 / 10
	scene(t, "granted at once", func(w *world) {
		w.store.Next(asynclocktest.Acquire.On("key"), asynclocktest.Slow(slow/2, slow/2))
		sent := time.Now()
		l := lock(w, w.client(), "key")
		wantTime(w, "reply", time.Now(), sent.Add(slow))
		wantTime(w, "trust deadline", l.Deadline(), sent.Add(trusted(ttl)))
	})
	scene(t, "granted to a heartbeat", func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		w.store.NextEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
		unlock(w, held)
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(slow/2, slow/2))
		l := p.get()
		asked := w.store.Calls(asynclocktest.Acquire.From(1))
		wantTime(w, "trust deadline", l.Deadline(), asked[len(asked)-1].At.Add(trusted(ttl)))
	})
	scene(t, "told to wait, granted by a message", func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(slow/2, slow/2))
		sent := time.Now()
		p := w.ask(w.Context(), waiter, "key")
		w.pass(slow + 100*time.Millisecond)
		unlock(w, held)
		wantTime(w, "trust deadline", p.has().Deadline(), sent.Add(trusted(grantTTL)))
	})
	scene(t, "granted to a request that rode on a release", func(w *world) {
		c := w.client()
		first := lock(w, c, "key")
		p := w.ask(w.Context(), c, "key", asynclock.WithDescription("on other terms"))
		w.store.Next(asynclocktest.Release.On("key"), asynclocktest.Slow(slow/2, slow/2))
		sent := time.Now()
		unlock(w, first)
		wantTime(w, "trust deadline", p.has().Deadline(), sent.Add(trusted(ttl)))
	})
}

// W6: a message that is repeated makes one lease, also when it comes again after
// that lease, or in the middle of the next one.
func TestRepeatedGrantMessageMakesOneLease(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		first := w.ask(w.Context(), waiter, "key", asynclock.WithDescription("first"))
		second := w.ask(w.Context(), waiter, "key", asynclock.WithDescription("second"))
		var box asynclocktest.Mailbox
		w.store.NextEvent(asynclocktest.Kind(store.EventGrant).For(1), box.Keep)
		unlock(w, held)

		box.Deliver(0)
		box.Deliver(0)
		l := first.has()
		second.waits()
		unlock(w, l)
		next := second.has()
		box.Deliver(0)
		w.wait()
		wantValid(w, next)
		unlock(w, next)
		box.Deliver(0)
		w.wait()
		w.wantUnused()
	})
}

// W6: the answer to a heartbeat that was under way when the message came adds
// trust, since it has set the TTL anew.
func TestHeartbeatAnsweredAfterTheGrantMessageAddsTrust(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		w.store.Every(asynclocktest.Renew.From(1), asynclocktest.Refuse)
		// The message is held up until the heartbeat is under way, whose answer
		// takes longer.
		var box asynclocktest.Mailbox
		w.store.NextEvent(asynclocktest.AnyEvent, box.Keep)
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(0, callTimeout/2))
		unlock(w, held)
		for w.calls(asynclocktest.Acquire.From(1)) < 2 {
			w.pass(time.Millisecond)
		}
		box.Deliver(0)
		asked := w.store.Calls(asynclocktest.Acquire.From(1))
		l := p.has()
		wantTime(w, "trust deadline by the message", l.Deadline(), asked[0].At.Add(trusted(grantTTL)))
		w.pass(callTimeout)
		wantTime(w, "trust deadline by the reply", l.Deadline(), asked[1].At.Add(trusted(ttl)))
	})
}

// W6: should that answer be a new grant, then the one of the message had ended,
// and the lease is not worth its name.
func TestHeartbeatGrantedAnewEndsTheLeaseOfTheMessage(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		var box asynclocktest.Mailbox
		w.store.NextEvent(asynclocktest.AnyEvent, box.Keep)
		unlock(w, held)
		w.store.Every(asynclocktest.Renew.From(1), asynclocktest.Refuse)
		// The heartbeat arrives when the key has been taken from the waiter.
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(callTimeout/2, 0))
		for w.calls(asynclocktest.Acquire.From(1)) < 2 {
			w.pass(time.Millisecond)
		}
		if _, err := w.session().Force(w.Context(), "key", 0); err != nil {
			w.Fatal(err)
		}
		box.Deliver(0)
		l := p.has()
		w.pass(callTimeout)
		wantError(w, l.Err(), asynclock.ErrExpired)
		w.wantUnused()
	})
}

// A token that the client itself has used since is no sign of another grant: a
// store may answer with the last one that it was told.
func TestHeartbeatGrantedWithATokenUsedSinceConfirmsTheLease(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		q := w.ask(w.Context(), waiter, "key")
		var box asynclocktest.Mailbox
		w.store.NextEvent(asynclocktest.AnyEvent, box.Keep)
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(callTimeout/2, 0))
		unlock(w, held)
		for w.calls(asynclocktest.Acquire.From(1)) < 2 {
			w.pass(time.Millisecond)
		}
		box.Deliver(0)
		unlock(w, p.has())
		l := q.has()
		w.store.Regrant(func(g *store.Grant) { g.Token = l.Token() })
		w.pass(callTimeout)
		wantValid(w, l)
	})
}

// A lease that is not renewed is to last for its TTL, which a grant message does
// not give: the store is asked, and its answer does.
func TestLeaseWithoutRenewalLastsForItsTTLAlsoWhenGrantedByMessage(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key", asynclock.WithRenewal(false))
		w.pass(heartbeat / 2)
		unlock(w, held)
		wantTime(w, "trust deadline", p.has().Deadline(), time.Now().Add(trusted(ttl)))
	})
}

// W8: a grant by message costs no request to confirm it: while the key passes
// from client to client there is one request to queue and one to release.
func TestHandoffBetweenClientsCostsTwoRequests(t *testing.T) {
	story(t, func(w *world) {
		const clients = 32
		held := lock(w, w.client(), "key")
		var waiting []*pending
		for range clients {
			waiting = append(waiting, w.ask(w.Context(), w.client(), "key"))
		}
		unlock(w, held)
		for _, p := range waiting {
			unlock(w, p.has())
		}
		if got, want := w.calls(asynclocktest.Any), 2*(1+clients); got != want {
			w.Errorf("%d clients took the key in turn with %d requests, want %d", 1+clients, got, want)
		}
	})
}

// W8: a lease that began with a message has the short grant TTL only, and is
// renewed when a third of that is gone.
func TestLeaseGrantedByMessageIsRenewedInAThirdOfItsTTL(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		asked := time.Now()
		p := w.ask(w.Context(), waiter, "key")
		unlock(w, held)
		l := p.has()
		time.Sleep(time.Until(asked.Add(grantTTL/3 + grantTTL/30)))
		w.wait()
		renewals := w.store.Calls(asynclocktest.Renew.From(1))
		if len(renewals) != 1 {
			w.Fatalf("got %d renewals after a third of the grant TTL, want 1", len(renewals))
		}
		wantTime(w, "trust deadline", l.Deadline(), renewals[0].At.Add(trusted(ttl)))
	})
}

// W9: whatever it has or has not been told, a waiter asks again at its
// heartbeat, so that the store keeps its place and a lost message costs no more.
func TestWaiterAsksAgainAtEachHeartbeat(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		w.pass(100 * heartbeat)
		p.waits()
		asked := w.store.Calls(asynclocktest.Acquire.From(1))
		if n := len(asked); n < 80 {
			w.Errorf("a waiter asked %d times in 100 heartbeats, want as many", n)
		}
		different := make(map[time.Duration]bool)
		for i := range asked[1:] {
			gap := asked[i+1].At.Sub(asked[i].At)
			if gap < heartbeat*8/10 || gap > heartbeat*12/10 {
				w.Errorf("a heartbeat came after %v, want %v give or take a fifth", gap, heartbeat)
			}
			different[gap] = true
			if asked[i+1].Owner != asked[0].Owner || asked[i+1].Acquire.Ticket == 0 {
				w.Errorf("a heartbeat was for owner %q with ticket %d, want owner %q with a ticket",
					asked[i+1].Owner, asked[i+1].Acquire.Ticket, asked[0].Owner)
			}
		}
		if len(different) < 2 {
			w.Error("all heartbeats came after the same time, want them spread")
		}
	})
}

// W9: the first in the store's queue also asks when the holder's TTL has run
// out, which is how a dead holder is noticed without waiting for a heartbeat.
func TestFirstInTheQueueTakesOverFromADeadHolder(t *testing.T) {
	story(t, func(w *world) {
		const alive = 10 * time.Second
		w.session().Acquire(w.Context(), []store.AcquireRequest{{Key: "key", Owner: "dead", TTL: alive}})
		died := time.Now()
		// Heartbeats are three seconds apart, so none of them is the reason.
		first := w.ask(w.Context(), w.client(asynclock.WithTTL(time.Hour)), "key")
		second := w.ask(w.Context(), w.client(asynclock.WithTTL(time.Hour)), "key")
		unlock(w, first.get())
		if late := first.at.Sub(died) - alive; late < 0 || late > 5*time.Millisecond {
			w.Errorf("the first waiter had the key %v after the holder's TTL, want at most 5ms", late)
		}
		near := func(c asynclocktest.Call) bool { return c.At.Sub(died.Add(alive)).Abs() <= 5*time.Millisecond }
		w.wantCalls(asynclocktest.Acquire.From(1).Where(near), 0) // it was not its turn
		unlock(w, second.get())
	})
}

// W9: a store that cannot count on messages says how soon to ask again.
func TestStoreWithoutMessagesIsAskedAsSoonAsItSays(t *testing.T) {
	story(t, func(w *world) {
		const recheck = 20 * time.Millisecond
		waiter := w.clientOf(altered{Store: w.store, mute: true, acquired: func(r *store.AcquireReply) {
			if r.Status == store.Waiting {
				r.Recheck = recheck
			}
		}})
		held := lock(w, w.client(), "key")
		p := w.ask(w.Context(), waiter, "key")
		w.pass(10 * recheck)
		unlock(w, held)
		released := time.Now()
		unlock(w, p.get())
		if late := p.at.Sub(released); late > recheck {
			w.Errorf("the waiter had the key after %v, want at most %v", late, recheck)
		}
		if got := w.calls(asynclocktest.Acquire.From(0)); got > 13 {
			w.Errorf("asked %d times in %v, want about once in %v", got, 10*recheck, recheck)
		}
	})
}

// W10: when messages may have been lost, every waiter asks again within 50 ms,
// and not all in the same moment.
func TestEveryWaiterAsksAgainAfterAGap(t *testing.T) {
	const (
		waiters = 100
		spread  = 50 * time.Millisecond
	)
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client(asynclock.WithTTL(time.Hour))
		var held []*asynclock.Lease
		var waiting []*pending
		for i := range waiters {
			key := fmt.Sprint("key ", i)
			held = append(held, lock(w, holder, key))
			waiting = append(waiting, w.ask(w.Context(), waiter, key))
		}
		w.store.EveryEvent(asynclocktest.Kind(store.EventGrant), asynclocktest.Drop)
		for _, l := range held {
			unlock(w, l)
		}
		for _, p := range waiting {
			p.waits()
		}
		gap := time.Now()
		w.store.Tell(1, store.Event{Kind: store.EventResync})
		times := make(map[time.Time]bool)
		for _, p := range waiting {
			unlock(w, p.get())
			times[p.at] = true
		}
		if took := time.Since(gap); took > spread {
			w.Errorf("all waiters had their key after %v, want at most %v", took, spread)
		}
		if len(times) < waiters/10 {
			w.Errorf("the waiters asked in %d different moments, want them spread", len(times))
		}
	})
}

// A wake-up is a hint, never a grant.
func TestWakeUpOnlyMakesTheWaiterAsk(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		asked := w.store.Calls(asynclocktest.Acquire.From(1))
		wake := store.Event{Kind: store.EventWake, Owner: asked[0].Owner}
		w.store.Tell(1, wake)
		p.waits()
		w.wantCalls(asynclocktest.Acquire.From(1), 2)
		w.store.NextEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
		unlock(w, held)
		w.store.Tell(1, wake)
		l := p.has()
		w.store.Tell(1, wake) // of no interest to a holder
		w.wait()
		wantValid(w, l)
		w.wantCalls(asynclocktest.Acquire.From(1), 3)
	})
}

// Events may come from anybody: what names no owner of ours changes nothing.
func TestEventsForUnknownOwnersChangeNothing(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		l := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		theirs, mine := w.store.Calls(asynclocktest.Acquire.From(0))[0].Owner, w.store.Calls(asynclocktest.Acquire.From(1))[0].Owner
		for _, owner := range []string{
			"", ".", "x", mine[:24], mine + "0", mine[:23] + "zz", mine[:23] + "ff", mine[:22] + "x" + mine[23:],
			"AAAAAAAAAAAAAAAAAAAAAA" + mine[22:], theirs,
		} {
			for _, kind := range []store.EventKind{
				0, store.EventGrant, store.EventWake, store.EventQueued, store.EventForced, 99,
			} {
				w.store.Tell(1, store.Event{
					Kind: kind, Owner: owner, Grant: store.Grant{Token: 1 << 60}, GrantTTL: time.Minute,
				})
			}
		}
		p.waits()
		wantValid(w, l)
		w.wantCalls(asynclocktest.Acquire.From(1), 1)
	})
}
