// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

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

// rest matches releases that keep a part.
func rest(c asynclocktest.Call) bool { return c.Op == asynclocktest.Release && c.Release.Rest != nil }

// A release of a part is repeated until it is answered.
func TestAReleaseOfAPartIsRepeated(t *testing.T) {
	story(t, func(w *world) {
		leases := oneGrant(w, semaphore(w, w.client(), 3), semaphore(w, w.client(), 3))
		w.store.Next(rest, asynclocktest.LoseReply, asynclocktest.Refuse)
		wantError(w, leases[0].Unlock(w.Context()), nil)
		w.wantUsed(2)
		w.wantCalls(rest, 3)
		unlock(w, leases[1])
		unlock(w, leases[2])
		w.wantUnused()
	})
}

// A release of a part that is never confirmed says so. The renewals give the part back.
func TestAReleaseOfAPartThatIsNotConfirmed(t *testing.T) {
	story(t, func(w *world) {
		log := new(notebook)
		leases := oneGrant(w, semaphore(w, w.client(log.option(slog.LevelWarn)), 3), semaphore(w, w.client(), 3))
		stop := w.store.Every(rest, asynclocktest.Refuse)
		wantError(w, leases[0].Unlock(w.Context()), asynclock.ErrUnreachable)
		w.wantUsed(3)
		w.pass(3 * ttl)
		log.wantLine(w, "level=WARN", "release of permits", "never confirmed", "unreachable")
		w.wantUsed(2)
		stop()
		unlock(w, leases[1])
		unlock(w, leases[2])
		w.wait()
		w.wantUnused()
	})
}

// A release of a part that finds nothing tells of a loss. All leases of the grant end.
func TestAReleaseOfAPartFindsALoss(t *testing.T) {
	story(t, func(w *world) {
		leases := oneGrant(w, semaphore(w, w.client(), 3), semaphore(w, w.client(), 3))
		w.store.EveryEvent(asynclocktest.Kind(store.EventForced), asynclocktest.Drop)
		if _, err := w.client().ForceUnlock(w.Context(), "key", 0); err != nil {
			w.Fatal(err)
		}
		wantValid(w, leases[1])
		wantError(w, leases[0].Unlock(w.Context()), asynclock.ErrExpired)
		w.wait()
		wantError(w, leases[1].Err(), asynclock.ErrExpired)
		wantError(w, leases[2].Unlock(w.Context()), asynclock.ErrExpired)
		w.wait()
		w.wantUnused()
	})
}
