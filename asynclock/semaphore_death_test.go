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

// These tests show the effects of a death, or of a lost message, on waiters for permits.

// A waiter for many permits keeps those behind it out. If it leaves, they are served at once. If it dies, they are
// served when the store has missed three of its heartbeats, by the next one of theirs.
func TestWaitersBehindALargeRequestThatIsGone(t *testing.T) {
	for _, c := range []struct {
		name  string
		gone  func(w *world, giveUp func())
		after time.Duration
	}{
		{"it gave up", func(_ *world, giveUp func()) { giveUp() }, 0},
		{"it died", func(w *world, _ func()) { w.store.Cut(1) }, 3*heartbeat + nextHeartbeat},
	} {
		scene(t, c.name, func(w *world) {
			ours, theirs := semaphore(w, w.client(), 3), semaphore(w, w.client(), 3)
			held := takePermits(w, ours, 1)
			ctx, giveUp := context.WithCancel(w.Context())
			defer giveUp()
			large := w.askBy(ctx, wants(theirs, 3), "key")
			var small []*pending
			for range 2 {
				small = append(small, w.askBy(w.Context(), wants(semaphore(w, w.client(), 3), 1), "key"))
			}
			w.pass(ttl)
			for _, p := range small {
				p.waits() // although there are permits for both
			}
			gone := time.Now()
			c.gone(w, giveUp)
			for _, p := range small {
				unlock(w, p.get())
				if took := p.at.Sub(gone); took > c.after {
					w.Errorf("a waiter behind the large request came after %v, want %v at most", took, c.after)
				}
			}
			wantValid(w, held)
			unlock(w, held)
			giveUp()
			<-large.done
		})
	}
}

// The permits of a client that dies are free after its TTL. Those of others stay theirs.
func TestPermitsOfAClientThatDied(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := semaphore(w, w.client(asynclock.WithDescription("dies")), 3), semaphore(w, w.client(), 3)
		dead, lives := takePermits(w, ours, 2), takePermits(w, theirs, 1)
		waiter := w.askBy(w.Context(), wants(theirs, 2), "key")
		w.pass(ttl)
		w.store.Cut(0)
		free := time.Now().Add(w.remains("dies"))
		<-dead.Done()
		end := time.Now()
		wantLost(w, dead, asynclock.ErrNotRenewed)
		waiter.waits()
		l := waiter.get()
		if after := waiter.at.Sub(end); after < ttl-trusted(ttl) {
			w.Errorf("the waiter came %v after the end of the lease of the dead, want %v at least", after, ttl-trusted(ttl))
		}
		if after := waiter.at.Sub(free); after < 0 || after > 5*time.Millisecond { // although others keep theirs
			w.Errorf("the waiter came %v after the end of the TTL of the dead, want 5ms at most", after)
		}
		wantValid(w, lives)
		w.wantUsed(3)
		unlock(w, lives)
		unlock(w, l)
	})
}

// A grant for several waiters of a client is lost, with the message or with the reply. The next request finds all of
// it and sets its TTL, and the waiters are served then.
func TestALostGrantOfSeveralPermits(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(w *world, held *asynclock.Lease)
	}{
		{"the message is lost", func(w *world, held *asynclock.Lease) {
			w.store.NextEvent(asynclocktest.Kind(store.EventGrant).For(0), asynclocktest.Drop)
			unlock(w, held)
		}},
		{"the reply is lost", func(w *world, _ *asynclock.Lease) {
			w.store.Cut(1) // so the first waiter's own request finds the permits free
			free := time.Now().Add(w.inspect("key").Remaining)
			w.store.Next(asynclocktest.Acquire.From(0).Where(func(call asynclocktest.Call) bool {
				return !call.At.Before(free)
			}), asynclocktest.LoseReply)
			w.pass(time.Until(free) + 5*time.Millisecond)
		}},
	} {
		scene(t, c.name, func(w *world) {
			ours, theirs := semaphore(w, w.client(), 3), semaphore(w, w.client(), 3)
			held := takePermits(w, theirs, 3)
			var waiting []*pending
			for range 3 {
				waiting = append(waiting, w.askBy(w.Context(), wants(ours, 1), "key"))
			}
			w.pass(2 * heartbeat)
			c.lose(w, held)
			granted := time.Now()
			w.wantUsed(3) // the store has granted all that the three want
			before := w.calls(asynclocktest.Acquire.From(0))
			for _, p := range waiting {
				p.waits()
			}
			for _, p := range waiting {
				l := p.get()
				if took := p.at.Sub(granted); took > nextHeartbeat {
					w.Errorf("a waiter whose grant was lost: came after %v, want %v at most", took, nextHeartbeat)
				}
				if !l.Valid(trusted(ttl) - time.Millisecond) {
					w.Error("the lease is not trusted for the whole TTL")
				}
			}
			if n := w.calls(asynclocktest.Acquire.From(0)) - before; n != 1 {
				w.Errorf("requests for the three: got %d, want one", n)
			}
			w.wantUsed(3)
			for i, p := range waiting {
				unlock(w, p.has())
				w.wantUsed(2 - i)
			}
		})
	}
}

// Permits whose maximum hold is over go to others after their TTL, or as soon as their holder unlocks them. The
// client's other permits stay.
func TestPermitsPastTheirMaximumHold(t *testing.T) {
	for _, c := range []struct {
		name    string
		unlocks bool
	}{{"the holder unlocks", true}, {"the holder does not notice", false}} {
		scene(t, c.name, func(w *world) {
			const bound = 10 * time.Second
			s := semaphore(w, w.client(asynclock.WithTTL(time.Minute)), 3)
			usual := takePermits(w, s, 1)
			over := takePermits(w, s, 2, asynclock.WithMaxHold(bound))
			start := time.Now()
			waiter := w.askBy(w.Context(), wants(semaphore(w, w.client(), 3), 2), "key")
			w.pass(bound)
			wantLost(w, over, asynclock.ErrMaxHold)
			waiter.waits()
			if c.unlocks {
				wantError(w, over.Unlock(w.Context()), asynclock.ErrMaxHold)
				waiter.has()
			}
			unlock(w, waiter.get())
			if took := waiter.at.Sub(start); took > bound+bound/4 {
				w.Errorf("the next permits: came after %v, want a little more than %v at most", took, bound)
			}
			wantValid(w, usual)
			unlock(w, usual)
			w.wait()
			w.wantUnused()
		})
	}
}
