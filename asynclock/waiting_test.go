// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
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
