// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// The stories of this file are about leases that must not last too long, and
// keys that must not be free too soon.

func TestMaxHoldEndsTheLeaseOnTime(t *testing.T) {
	for _, bound := range []time.Duration{asynclock.MinTTL, ttl / 3, ttl, 3*ttl + ttl/7, 100 * ttl} {
		scene(t, bound.String(), func(w *world) {
			l := lock(w, w.client(), "key", asynclock.WithMaxHold(bound))
			held := time.Now()
			<-l.Done()
			wantTime(w, "end", time.Now(), held.Add(bound))
			wantTime(w, "deadline", l.Deadline(), held.Add(bound))
			wantLost(w, l, asynclock.ErrMaxHold)
		})
	}
}

// A holder that is stuck for ever keeps the key from nobody for ever: a waiter
// of its own client has it as soon as one of another.
func TestMaxHoldServesLocalWaitersAsSoonAsRemoteOnes(t *testing.T) {
	for _, bound := range []time.Duration{asynclock.MinTTL, time.Second, ttl, 3*ttl + ttl/7} {
		scene(t, bound.String(), func(w *world) {
			here, there := w.client(), w.client()
			lock(w, here, "for a local one", asynclock.WithMaxHold(bound))
			lock(w, here, "for a remote one", asynclock.WithMaxHold(bound))
			end := time.Now().Add(bound)
			local := w.ask(w.Context(), here, "for a local one")
			remote := w.ask(w.Context(), there, "for a remote one")
			unlock(w, local.get())
			unlock(w, remote.get())
			if apart := local.at.Sub(remote.at).Abs(); apart > 5*time.Millisecond {
				w.Errorf("the local waiter had its key %v after the bound, the remote one %v; want both in the same moment",
					local.at.Sub(end), remote.at.Sub(end))
			}
			if late, limit := remote.at.Sub(end), min(bound, ttl)/5+20*time.Millisecond; late < 0 || late > limit {
				w.Errorf("the key was free %v after the bound, want at most %v", late, limit)
			}
		})
	}
}

// The bound is each lease's own, also when the key passes inside the client or
// was granted by a message.
func TestMaxHoldCountsFromEachClaim(t *testing.T) {
	const bound = 10 * time.Second
	for _, c := range []struct {
		name string
		from func(w *world, here, there *asynclock.Client) *asynclock.Client
	}{
		{"passed on in the client", func(_ *world, here, _ *asynclock.Client) *asynclock.Client { return here }},
		{"granted by a message", func(_ *world, _, there *asynclock.Client) *asynclock.Client { return there }},
	} {
		scene(t, c.name, func(w *world) {
			here, there := w.client(), w.client()
			l := lock(w, here, "key", asynclock.WithMaxHold(bound))
			p := w.ask(w.Context(), c.from(w, here, there), "key", asynclock.WithMaxHold(bound))
			w.pass(bound * 9 / 10)
			unlock(w, l)
			next := p.has()
			held := time.Now()
			<-next.Done()
			wantTime(w, "end", time.Now(), held.Add(bound))
			wantLost(w, next, asynclock.ErrMaxHold)
		})
	}
}

// After Unlock, which returns at once, nobody has the key until the time since
// its claim has passed, and then the next one has it.
func TestMinHoldKeepsTheKeyFromEveryone(t *testing.T) {
	for _, least := range []time.Duration{time.Second, ttl - time.Second, time.Hour} {
		for _, whose := range []string{"local", "remote"} {
			scene(t, whose+" for "+least.String(), func(w *world) {
				here, there := w.client(asynclock.WithMinHold(least)), w.client(asynclock.WithMinHold(least))
				l := lock(w, here, "key")
				free := time.Now().Add(least)
				w.pass(time.Millisecond)
				from := here
				if whose == "remote" {
					from = there
				}
				p := w.ask(w.Context(), from, "key")
				before := time.Now()
				unlock(w, l)
				wantTime(w, "return of Unlock", time.Now(), before)
				p.waits()
				wantError(w, l.Err(), asynclock.ErrUnlocked)
				_, err := there.TryLock(w.Context(), "key")
				wantError(w, err, asynclock.ErrHeld)
				p.get()
				if late := p.at.Sub(free); late < 0 || late > 50*time.Millisecond {
					w.Errorf("the key came %v after its time, want at most 50ms", late)
				}
			})
		}
	}
}

func TestMinHoldThatIsOverCostsNothing(t *testing.T) {
	story(t, func(w *world) {
		here, there := w.client(asynclock.WithMinHold(ttl)), w.client()
		l := lock(w, here, "key")
		p := w.ask(w.Context(), there, "key")
		w.pass(ttl)
		unlock(w, l)
		unlock(w, p.has())
		w.wantUnused()
	})
}

// Where the minimum hold is no longer than the maximum, nothing of that is needed.
func TestMinHoldWithinMaxHoldKeepsTheKeyNoLonger(t *testing.T) {
	for _, least := range []time.Duration{time.Second, 2 * time.Second} {
		scene(t, least.String(), func(w *world) {
			const most = 2 * time.Second
			lock(w, w.client(), "key", asynclock.WithMinHold(least), asynclock.WithMaxHold(most))
			end := time.Now().Add(most)
			p := w.ask(w.Context(), w.client(), "key")
			p.get()
			if late, limit := p.at.Sub(end), most/5+20*time.Millisecond; late < 0 || late > limit {
				w.Errorf("the key was free %v after the maximum, want at most %v", late, limit)
			}
		})
	}
}

func TestMinHoldIsForTheWholeOfAJoinedHolding(t *testing.T) {
	story(t, func(w *world) {
		here, there := w.client(asynclock.WithMinHold(time.Minute), asynclock.WithReentry(true)), w.client()
		l := lock(w, here, "key")
		free := time.Now().Add(time.Minute)
		joined, err := here.Lock(l.Context(), "key")
		if err != nil {
			w.Fatal(err)
		}
		p := w.ask(w.Context(), there, "key")
		unlock(w, l)
		w.pass(10 * time.Second)
		unlock(w, joined)
		p.get()
		if late := p.at.Sub(free); late < 0 || late > 5*time.Millisecond {
			w.Errorf("the key came %v after its time, want at most 5ms", late)
		}
	})
}

// A release that has to be repeated does not begin the minimum hold anew.
func TestRepeatedReleaseKeepsTheKeyNoLongerThanTheFirst(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		l := lock(w, c, "key", asynclock.WithMinHold(10*time.Second))
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Refuse, asynclocktest.Refuse, asynclocktest.Refuse)
		l.UnlockChan(w.Context())
		began := time.Now()
		got := lock(w, other, "key")
		if waited := since(began); waited > 10*time.Second+50*time.Millisecond {
			w.Errorf("the next had the key after %v, want it some 10s after the claim", waited)
		}
		unlock(w, got)
	})
}
