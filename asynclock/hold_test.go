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

// The TTL requested from the store lasts to the bound without any renewal.
func TestMaxHoldIsReachedWithoutRenewal(t *testing.T) {
	story(t, func(w *world) {
		for _, bound := range []time.Duration{asynclock.MinTTL, time.Second, ttl / 3, ttl * 2 / 3} {
			l := lock(w, w.client(), bound.String(), asynclock.WithMaxHold(bound), asynclock.WithRenewal(false))
			<-l.Done()
			wantLost(w, l, asynclock.ErrMaxHold)
		}
	})
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

// A stuck holder that was granted the key by a message keeps it no longer than
// any other: the grant is for a TTL that fits the bound.
func TestMaxHoldBoundsTheTTLOfAGrantByMessage(t *testing.T) {
	story(t, func(w *world) {
		first, second, third := w.client(), w.client(), w.client()
		l := lock(w, first, "key")
		stuck := w.ask(w.Context(), second, "key", asynclock.WithMaxHold(time.Second), asynclock.WithTTL(time.Hour))
		p := w.ask(w.Context(), third, "key")
		unlock(w, l)
		stuck.has()
		end := stuck.at.Add(time.Second)
		unlock(w, p.get())
		if late := p.at.Sub(end); late < 0 || late > heartbeat*12/10 {
			w.Errorf("the key was free %v after the bound, want at most a heartbeat", late)
		}
	})
}

// Nor does one that had it passed on inside the client, as a future: the renewal that is
// sent with the handoff, before the claim and so before there is a bound, fits it too.
func TestMaxHoldBoundsTheTTLOfAFuture(t *testing.T) {
	const bound = 2 * time.Second
	story(t, func(w *world) {
		here, there := w.client(asynclock.WithMaxHold(bound)), w.client()
		l := lock(w, here, "key")
		future := here.LockChan(w.Context(), "key")
		unlock(w, l)
		w.wait() // the renewal is answered
		if _, err := (<-future).Lease(); err != nil {
			w.Fatal(err)
		}
		end := time.Now().Add(bound)
		p := w.ask(w.Context(), there, "key")
		unlock(w, p.get())
		if late, limit := p.at.Sub(end), bound/5+20*time.Millisecond; late < 0 || late > limit {
			w.Errorf("the key was free %v after the bound, want at most %v", late, limit)
		}
	})
}

// Renewals stop where they would only keep the key from others.
func TestMaxHoldIsNotRenewedPastItsBound(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key", asynclock.WithMaxHold(3*ttl))
		bound := time.Now().Add(3 * ttl)
		<-l.Done()
		w.pass(ttl)
		enough := false
		for _, r := range w.store.Calls(asynclocktest.Renew.On("key")) {
			if enough {
				w.Errorf("a renewal was sent %v before the bound, which trust had reached already", bound.Sub(r.At))
			}
			enough = !r.At.Add(trusted(r.Renew.TTL)).Before(bound)
			if until := r.At.Add(r.Renew.TTL); until.After(bound.Add(ttl / 5)) {
				w.Errorf("a renewal asked for the key until %v after the bound", until.Sub(bound))
			}
		}
		w.wantUnused()
	})
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

// The time counts from the claim of a future, not from its grant; a grant that
// nobody claims is not kept back.
func TestMinHoldCountsFromTheClaim(t *testing.T) {
	story(t, func(w *world) {
		here, there := w.client(asynclock.WithMinHold(time.Minute)), w.client()
		future := here.LockChan(w.Context(), "key")
		w.pass(ttl / 2)
		l := claim(w, future)
		free := time.Now().Add(time.Minute)
		p := w.ask(w.Context(), there, "key")
		unlock(w, l)
		unlock(w, p.get())
		if late := p.at.Sub(free); late < 0 || late > 5*time.Millisecond {
			w.Errorf("the key came %v after its time, want at most 5ms", late)
		}

		here.LockChan(w.Context(), "key")
		w.wait()
		p = w.ask(w.Context(), there, "key")
		p.get()
		if took := time.Since(free); took > 2*ttl {
			w.Errorf("an unclaimed grant kept the key for %v, want no longer than its trust deadline", took)
		}
	})
}

// A job that must not run twice in an interval and must not run for too long
// either is kept to both.
func TestMinHoldOutlastsMaxHold(t *testing.T) {
	story(t, func(w *world) {
		here, there := w.client(), w.client()
		l := lock(w, here, "key", asynclock.WithMinHold(time.Hour), asynclock.WithMaxHold(time.Minute))
		claimed := time.Now()
		p := w.ask(w.Context(), there, "key")
		<-l.Done()
		wantLost(w, l, asynclock.ErrMaxHold)
		w.pass(time.Minute)
		p.waits()
		wantError(w, l.Unlock(w.Context()), asynclock.ErrMaxHold)
		p.get()
		if late := p.at.Sub(claimed) - time.Hour; late < 0 || late > 5*time.Millisecond {
			w.Errorf("the key came %v after its time, want at most 5ms", late)
		}
	})
}

// One request that is lost at that moment does not cost the rest of the minimum hold.
func TestMinHoldOutlastsMaxHoldWhenTheStoreIsSilent(t *testing.T) {
	for _, c := range []struct {
		most    time.Duration
		renewal asynclock.LockOption
	}{
		{time.Second, asynclock.WithRenewal(false)},
		{time.Second, asynclock.WithRenewal(true)},
		{ttl, asynclock.WithRenewal(true)},
		{3*ttl + ttl/7, asynclock.WithRenewal(true)},
	} {
		scene(t, c.most.String(), func(w *world) {
			l := lock(w, w.client(), "key", asynclock.WithMinHold(time.Hour), asynclock.WithMaxHold(c.most), c.renewal)
			w.store.Next(asynclocktest.Release.From(0), asynclocktest.Hang, asynclocktest.Hang)
			<-l.Done()
			w.pass(2 * ttl)
			_, err := w.client().TryLock(w.Context(), "key")
			wantError(w, err, asynclock.ErrHeld)
		})
	}
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
