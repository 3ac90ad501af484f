// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
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

// stoodStill is a request whose process stands still before it reads the answer.
// A process that stands still has no timeouts.
func stoodStill(d time.Duration) asynclocktest.Fault {
	return func(_ context.Context, carry func()) error {
		carry()
		time.Sleep(d)
		return nil
	}
}

// wantEnd waits until an acquisition fails.
func (p *pendingOf[L]) wantEnd(targets ...error) {
	p.w.Helper()
	<-p.done
	wantError(p.w, p.err, targets...)
}

// A Lock behind a TryLock waits on, though the grant of the try came too late.
func TestLockBehindATryLockWhoseGrantCameTooLate(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Acquire.Any, stoodStill(ttl))
		tried := w.try(w.Context(), c)
		p := w.ask(w.Context(), c, "key")
		<-tried.done
		wantError(w, tried.err, asynclock.ErrTooSlow)
		unlock(w, p.get())
		w.wantUnused()
	})
}

// A renewal that was overtaken by Unlock is nothing to the client's next lease.
func TestRenewalOfAnEarlierLeaseSaysNothingOfTheNext(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		first := lock(w, c, "key")
		// It asks on other terms, and so gets a lease of its own from the store.
		p := w.ask(w.Context(), c, "key", asynclock.WithTTL(2*ttl))
		w.store.Next(asynclocktest.Renew.From(0), asynclocktest.Slow(ttl/10, 0))
		w.pass(ttl/3 + time.Millisecond) // the renewal is on its way, for at most a fifteenth
		unlock(w, first)
		second := p.has()
		w.pass(ttl / 10) // it has come: that owner has lost the key
		wantValid(w, second)
		unlock(w, second)
	})
}

// FuzzEvent delivers an event with any content, for any owner or for one of
// ours: it does no harm to a lease that it does not name, and a lease that comes
// of it ends.
func FuzzEvent(f *testing.F) {
	for kind := range 8 {
		f.Add(kind, "", false, int64(1), int64(1), int64(1), 1)
		f.Add(kind, "ours", true, int64(1<<40), int64(0), int64(time.Second), 1)
		f.Add(kind, "AAAAAAAAAAAAAAAAAAAAAA.3f", false, int64(-1), int64(-1), int64(-1), -1)
		f.Add(kind, "AAAAAAAAAAAAAAAAAAAAAA.ff", false, int64(0), int64(1<<62), int64(1<<62), 1<<40)
	}
	f.Fuzz(func(t *testing.T, kind int, owner string, ours bool, first, spare, grantTTL int64, waiters int) {
		synctest.Test(t, func(t *testing.T) {
			memory := memstore.New()
			w := &world{T: t, store: asynclocktest.Wrap(memory), memory: memory}
			holder, c := w.client(), w.client()
			lock(w, holder, "theirs")
			mine := lock(w, c, "mine")
			future := c.LockChan(w.Context(), "theirs")
			w.wait()
			if ours {
				owner = w.store.Calls(asynclocktest.Acquire.From(1).Where(asynclocktest.Acquire.On("theirs")))[0].Owner
			}
			w.store.Tell(1, store.Event{
				Kind: store.EventKind(kind), Owner: owner, GrantTTL: time.Duration(grantTTL), Waiters: waiters,
				Grant: store.Grant{Token: first, Reserved: spare, TokensFollowClock: true},
			})
			w.wait()
			wantValid(w, mine)
			if len(future) == 0 {
				return
			}
			if !ours || store.EventKind(kind) != store.EventGrant {
				w.Fatalf("event %d for owner %q was a grant", kind, owner)
			}
			if l, err := (<-future).Lease(); err == nil && time.Until(l.Deadline()) > time.Duration(grantTTL) {
				w.Errorf("a grant for %v is trusted for %v", time.Duration(grantTTL), time.Until(l.Deadline()))
			}
		})
	})
}
