// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// cohortHandoffs is how often a key passes inside a client while someone waits
// elsewhere, as docs/design.md has it.
const cohortHandoffs = 128

// turns joins the names of those who were served, each with how often in a row:
// "here 3, there 1".
func turns(served []string) string {
	var text []string
	for i := 0; i < len(served); {
		n := 1
		for i+n < len(served) && served[i+n] == served[i] {
			n++
		}
		text = append(text, fmt.Sprintf("%s %d", served[i], n))
		i += n
	}
	return strings.Join(text, ", ")
}

// While nobody waits elsewhere a key passes inside the client without end, and
// the store hears only renewals.
func TestKeyPassesInTheClientWithoutTheStore(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		const waiters, hold = 1000, time.Millisecond
		p := w.procession()
		for range waiters {
			p.join("here", c, hold)
		}
		p.wait()
		w.wantCalls(asynclocktest.Acquire.On("key"), 1)
		w.wantCalls(asynclocktest.Release.On("key"), 1)
		if got, most := w.calls(asynclocktest.Renew.On("key")), int(waiters*hold/(100*time.Millisecond))+2; got > most {
			w.Errorf("renewed the key %d times, want at most %d", got, most)
		}
		w.wantUnused()
	})
}

// With waiters everywhere each client has its turn, none twice before another
// that waits.
func TestEveryClientIsServedInTurn(t *testing.T) {
	story(t, func(w *world) {
		const clients, waiters = 8, 3 * cohortHandoffs
		p := w.procession()
		for i := range clients {
			c := w.client()
			for range waiters {
				p.join(fmt.Sprint("client ", i), c, time.Millisecond/20)
			}
		}
		served := p.wait()
		last := make(map[string]int) // when each was served last
		for i, name := range served {
			if gap := i - last[name]; gap > clients*(cohortHandoffs+1) {
				w.Errorf("%s waited for %d others, want at most one turn of each: %s", name, gap, turns(served))
				break
			}
			last[name] = i
		}
		w.wantUnused()
	})
}

// A handoff is a new lease: the one before has ended, and its context.
func TestPassedOnLeaseHasEnded(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		first := lock(w, c, "key")
		p := w.ask(w.Context(), c, "key")
		ctx := first.Context()
		unlock(w, first)
		second := p.has()
		wantError(w, first.Err(), asynclock.ErrUnlocked)
		if ctx.Err() == nil || first.Valid(0) {
			w.Error("a lease lasts after it was passed on")
		}
		wantError(w, first.Renew(w.Context(), ttl), asynclock.ErrUnlocked)
		wantError(w, first.Unlock(w.Context()), nil)
		wantValid(w, second)
		if second.Token() <= first.Token() {
			w.Errorf("got token %d after %d, want a larger one", second.Token(), first.Token())
		}
		unlock(w, second)
		w.wantUnused()
	})
}

// chain takes the key n times in a row, each time by a waiter of the same
// client, without giving up the last lease, and returns all of them.
func chain(w *world, c *asynclock.Client, n int) []*asynclock.Lease {
	w.Helper()
	leases := []*asynclock.Lease{lock(w, c, "key")}
	for range n - 1 {
		p := w.ask(w.Context(), c, "key")
		unlock(w, leases[len(leases)-1])
		leases = append(leases, p.has())
	}
	return leases
}

// wantRising fails the story unless each lease's token is larger than the one
// before it.
func wantRising(w *world, leases ...*asynclock.Lease) {
	w.Helper()
	for i := range leases[1:] {
		if before, after := leases[i].Token(), leases[i+1].Token(); after <= before {
			w.Errorf("lease %d has token %d after %d, want a larger one", i+2, after, before)
		}
	}
}

func TestTokensRise(t *testing.T) {
	story(t, func(w *world) {
		here, there := w.client(), w.client()
		var leases []*asynclock.Lease
		for range 10 {
			passed := chain(w, here, 10)
			p := w.ask(w.Context(), there, "key")
			unlock(w, passed[9])
			leases = append(append(leases, passed...), p.has())
			unlock(w, p.lease)
			l := lock(w, there, "key", asynclock.WithRenewal(false))
			w.pass(ttl) // it expires
			leases = append(leases, l)
		}
		wantRising(w, leases...)
	})
}

// A client that handed tokens on and was never heard of again has used none that
// the store gives to others.
func TestTokensRiseOverATenureThatVanished(t *testing.T) {
	for _, c := range []struct {
		name    string
		regrant func(*store.Grant)
	}{
		{"tokens set aside", func(*store.Grant) {}},
		{"a token for each microsecond", func(g *store.Grant) {
			g.Reserved, g.TokensFollowClock = 0, true
		}},
	} {
		scene(t, c.name, func(w *world) {
			w.store.Regrant(c.regrant)
			here, there := w.client(), w.client()
			w.store.Every(asynclocktest.Renew.From(0), asynclocktest.Hang)
			var leases []*asynclock.Lease
			leases = append(leases, lock(w, here, "key"))
			for range 50 {
				p := w.ask(w.Context(), here, "key")
				w.pass(10 * time.Microsecond)
				unlock(w, leases[len(leases)-1])
				leases = append(leases, p.has())
			}
			abandon(here)
			wantRising(w, append(leases, w.ask(w.Context(), there, "key").get())...)
		})
	}
}
