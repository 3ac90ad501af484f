// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// kinds are the counts of a client, by kind of lease.
func kinds(s asynclock.Stats) map[string]asynclock.Acquisitions {
	return map[string]asynclock.Acquisitions{"exclusive": s.Exclusive, "readers": s.Readers, "permits": s.Permits, "several": s.Several}
}

// numbers are the counts in v by their names in JSON, those inside others with the names of these before, except 0.
func numbers(v any) map[string]int {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		panic(err)
	}
	found := make(map[string]int)
	var add func(prefix string, all map[string]any)
	add = func(prefix string, all map[string]any) {
		for name, value := range all {
			switch value := value.(type) {
			case map[string]any:
				add(prefix+name+".", value)
			case float64:
				if value != 0 && name != "least_trust" {
					found[prefix+name] = int(value)
				}
			}
		}
	}
	add("", all)
	return found
}

// wantSums fails the story unless the client's counts can be true.
func (w *world) wantSums(c *asynclock.Client) {
	w.Helper()
	for name, n := range numbers(c.Stats()) {
		if n < 0 {
			w.Errorf("%s: got %d", name, n)
		}
	}
}

// wantAllOver fails the story unless the counts say that nothing goes on in a client, which is closed.
func (w *world) wantAllOver(c *asynclock.Client) {
	w.Helper()
	s := c.Stats()
	for kind, a := range kinds(s) {
		if a.Requested != a.Acquired.Sum()+a.Refused.Sum()+a.GivenUp.Sum() || a.Acquired.Sum() != a.Ended.Sum() {
			w.Errorf("%s, after Close: got %v, want sums that agree", kind, numbers(a))
		}
	}
	if s.Keys != (asynclock.Keys{}) {
		w.Errorf("keys, after Close: got %+v, want none", s.Keys)
	}
}

// wantCounts fails the story unless these are all numbers of the client's leases.
func (w *world) wantCounts(c *asynclock.Client, want string) {
	w.Helper()
	w.wait()
	var got []string
	for name, n := range numbers(c.Stats()) {
		kind, _, _ := strings.Cut(name, ".")
		if _, isKind := kinds(asynclock.Stats{})[kind]; isKind {
			got = append(got, fmt.Sprintf("%s %d", name, n))
		}
	}
	slices.Sort(got)
	if got := strings.Join(got, ", "); got != want {
		w.Errorf("counts: got\n\t%s\nwant\n\t%s", got, want)
	}
}

// Each request and each end is counted once, by its reason.
func TestStatsCountRequests(t *testing.T) {
	t.Parallel()
	with := asynclock.WithWait
	for _, s := range []struct {
		name string
		tell func(w *world, c *asynclock.Client)
		want string
	}{
		{"at once, and held", func(w *world, c *asynclock.Client) {
			lock(w, c, "key")
		}, "exclusive.acquired.at_once 1, exclusive.held 1, exclusive.requested 1"},
		{"unlocked", func(w *world, c *asynclock.Client) {
			unlock(w, lock(w, c, "key"))
		}, "exclusive.acquired.at_once 1, exclusive.ended.unlocked 1, exclusive.requested 1"},
		{"passed on in the client", func(w *world, c *asynclock.Client) {
			l := lock(w, c, "key")
			next := w.ask(w.Context(), c, "key")
			w.pass(time.Millisecond)
			unlock(w, l)
			unlock(w, next.has())
		}, "exclusive.acquired.at_once 1, exclusive.acquired.local 1, exclusive.ended.unlocked 2, exclusive.requested 2"},
		{"after another client, and waiting until then", func(w *world, c *asynclock.Client) {
			l := lock(w, w.client(), "key")
			next := w.ask(w.Context(), c, "key")
			w.wantCounts(c, "exclusive.requested 1, exclusive.waiting 1")
			unlock(w, l)
			unlock(w, next.get())
		}, "exclusive.acquired.queued 1, exclusive.ended.unlocked 1, exclusive.requested 1"},
		{"retained", func(w *world, c *asynclock.Client) {
			unlock(w, lock(w, c, "key", asynclock.WithRetention(time.Minute)))
			w.pass(time.Second)
			unlock(w, lock(w, c, "key", asynclock.WithRetention(time.Minute)))
		}, "exclusive.acquired.at_once 1, exclusive.acquired.retained 1, exclusive.ended.unlocked 2, exclusive.requested 2"},
		{"re-entry, also of a reader under a writer", func(w *world, c *asynclock.Client) {
			l := lock(w, c, "key")
			inner := must(c.RLock(l.Context(), "key", asynclock.WithReentry(true)))
			unlock(w, l)
			unlock(w, inner)
		}, "exclusive.acquired.at_once 1, exclusive.ended.unlocked 1, exclusive.requested 1, readers.acquired.joined 1, readers.ended.unlocked 1, readers.requested 1"},
		{"readers, a downgrade among them", func(w *world, c *asynclock.Client) {
			reader := must(lock(w, c, "key").Downgrade(w.Context()))
			unlock(w, must(c.RLock(w.Context(), "key")))
			unlock(w, reader)
		}, "exclusive.acquired.at_once 1, exclusive.ended.unlocked 1, exclusive.requested 1, readers.acquired.at_once 1, readers.acquired.downgraded 1, readers.ended.unlocked 2, readers.requested 2"},
		{"a downgrade that fails", func(w *world, c *asynclock.Client) {
			l := lock(w, c, "key")
			w.store.Every(asynclocktest.Release.From(0), asynclocktest.Fail(asynclock.ErrDenied))
			wantError(w, errOf(l.Downgrade(w.Context())), asynclock.ErrDenied)
		}, "exclusive.acquired.at_once 1, exclusive.ended.unlocked 1, exclusive.requested 1, readers.refused.denied 1, readers.requested 1"},
		{"permits", func(w *world, c *asynclock.Client) {
			s := must(c.Semaphore("key", 3))
			unlock(w, must(s.Acquire(w.Context(), 2)))
			wantError(w, errOf(s.TryAcquire(w.Context(), 4)), asynclock.ErrPermits)
			wantError(w, errOf((<-s.AcquireChan(w.Context(), 0)).Lease()), asynclock.ErrInvalidOption)
		}, "permits.acquired.at_once 1, permits.ended.unlocked 1, permits.refused.invalid 2, permits.requested 3"},
		{"several keys, and one that another has", func(w *world, c *asynclock.Client) {
			m := must(c.LockAll(w.Context(), []string{"a", "b"}))
			wantError(w, errOf(c.TryLockAll(w.Context(), []string{"a", "c"}, with(0))), asynclock.ErrHeld)
			next := begin(w, func() (*asynclock.MultiLease, error) { return c.LockAll(w.Context(), []string{"b", "c"}) })
			wantError(w, m.Unlock(w.Context()), nil)
			next.get()
			wantError(w, errOf(c.LockAll(w.Context(), nil)), asynclock.ErrInvalidOption)
		}, "several.acquired.at_once 1, several.acquired.queued 1, several.ended.unlocked 1, several.held 1, several.refused.held 1, several.refused.invalid 1, several.requested 4"},
		{"several keys by a future, of which one is lost", func(w *world, c *asynclock.Client) {
			m := must((<-c.LockAllChan(w.Context(), []string{"a", "b"})).Lease())
			w.wantCounts(c, "several.acquired.at_once 1, several.held 1, several.requested 1")
			must(w.store.Expire(w.Context(), "b"))
			wantError(w, m.Renew(w.Context(), ttl), asynclock.ErrLost)
		}, "several.acquired.at_once 1, several.ended.expired 1, several.requested 1"},
		{"a part that is unlocked by itself", func(w *world, c *asynclock.Client) {
			m := must(c.LockAll(w.Context(), []string{"a", "b"}))
			part, _ := asynclock.LeaseFrom(m.Context(), "b")
			unlock(w, part)
		}, "several.acquired.at_once 1, several.ended.unlocked 1, several.requested 1"},
		{"held, for those that never wait", func(w *world, c *asynclock.Client) {
			lock(w, w.client(), "key")
			wantError(w, errOf(c.TryLock(w.Context(), "key")), asynclock.ErrHeld)
			wantError(w, errOf((<-c.LockChan(w.Context(), "key", with(0))).Lease()), asynclock.ErrHeld)
			mine := lock(w, c, "mine")
			wantError(w, errOf(c.TryLock(w.Context(), "mine")), asynclock.ErrHeld)
			unlock(w, mine)
		}, "exclusive.acquired.at_once 1, exclusive.ended.unlocked 1, exclusive.refused.held 3, exclusive.requested 4"},
		{"a deadline, and a context that ends", func(w *world, c *asynclock.Client) {
			lock(w, w.client(), "key")
			wantError(w, errOf(c.Lock(w.Context(), "key", with(time.Second))), context.DeadlineExceeded, asynclock.ErrHeld)
			ctx, cancel := context.WithCancel(w.Context())
			p, f := w.ask(ctx, c, "key"), c.LockChan(ctx, "key")
			cancel()
			wantError(w, p.ended(), context.Canceled)
			wantError(w, errOf((<-f).Lease()), context.Canceled)
			wantError(w, errOf(c.Lock(ctx, "key")), context.Canceled)
			wantError(w, errOf((<-c.LockChan(ctx, "key")).Lease()), context.Canceled)
		}, "exclusive.given_up.canceled 2, exclusive.given_up.timeout 1, exclusive.requested 3"},
		{"a try whose context ends before the answer", func(w *world, c *asynclock.Client) {
			w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Hang)
			ctx, cancel := context.WithTimeout(w.Context(), time.Millisecond)
			defer cancel()
			wantError(w, errOf(c.TryLock(ctx, "key")), context.DeadlineExceeded)
		}, "exclusive.given_up.timeout 1, exclusive.requested 1"},
		{"a queue that is full", func(w *world, c *asynclock.Client) {
			lock(w, w.client(), "key")
			w.ask(w.Context(), c, "key")
			wantError(w, errOf(c.Lock(w.Context(), "key", asynclock.WithQueueLimit(1))), asynclock.ErrQueueFull)
		}, "exclusive.refused.queue_full 1, exclusive.requested 2, exclusive.waiting 1"},
		{"a store that is silent, in grace, or denies", func(w *world, c *asynclock.Client) {
			w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Fail(&asynclock.GraceError{Remaining: time.Second}))
			wantError(w, errOf(c.TryLock(w.Context(), "key")), asynclock.ErrGrace)
			w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Fail(asynclock.ErrUnreachable))
			wantError(w, errOf(c.TryLock(w.Context(), "key")), asynclock.ErrUnreachable)
			w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Fail(asynclock.ErrDenied))
			wantError(w, errOf(c.Lock(w.Context(), "key")), asynclock.ErrDenied)
			w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Fail(asynclock.ErrForeignData))
			wantError(w, errOf((<-c.LockChan(w.Context(), "key")).Lease()), asynclock.ErrForeignData)
		}, "exclusive.refused.denied 1, exclusive.refused.grace 1, exclusive.refused.other 1, exclusive.refused.unreachable 1, exclusive.requested 4"},
		{"mistakes", func(w *world, c *asynclock.Client) {
			wantError(w, errOf(c.Lock(w.Context(), "")), asynclock.ErrInvalidKey)
			wantError(w, errOf((<-c.LockChan(w.Context(), "key", nil)).Lease()), asynclock.ErrInvalidOption)
			l := lock(w, c, "key")
			wantError(w, errOf(c.Lock(l.Context(), "key")), asynclock.ErrReentry)
		}, "exclusive.acquired.at_once 1, exclusive.held 1, exclusive.refused.invalid 3, exclusive.requested 4"},
		{"a client that is closed", func(w *world, c *asynclock.Client) {
			lock(w, w.client(), "key")
			p, f := w.ask(w.Context(), c, "key"), c.LockChan(w.Context(), "key")
			abandon(c)
			wantError(w, p.ended(), asynclock.ErrClosed)
			wantError(w, errOf((<-f).Lease()), asynclock.ErrClosed)
			wantError(w, errOf(c.Lock(w.Context(), "key")), asynclock.ErrClosed)
		}, "exclusive.refused.closed 3, exclusive.requested 3"},
		{"leases that end by themselves", func(w *world, c *asynclock.Client) {
			lock(w, c, "expired", asynclock.WithRenewal(false))
			lock(w, c, "held for long", asynclock.WithMaxHold(time.Second))
			w.pass(ttl)
		}, "exclusive.acquired.at_once 2, exclusive.ended.expired 1, exclusive.ended.max_hold 1, exclusive.requested 2"},
		{"leases that are taken", func(w *world, c *asynclock.Client) {
			forced, gone, stolen := lock(w, c, "forced"), lock(w, c, "gone"), lock(w, c, "stolen")
			must(w.client().ForceUnlock(w.Context(), "forced", 0))
			must(w.store.Expire(w.Context(), "gone"))
			must(w.store.Expire(w.Context(), "stolen"))
			lock(w, w.client(), "stolen")
			for _, l := range []*asynclock.Lease{forced, gone, stolen} {
				wantError(w, l.Renew(w.Context(), ttl), asynclock.ErrLost)
			}
		}, "exclusive.acquired.at_once 3, exclusive.ended.expired 1, exclusive.ended.forced 1, exclusive.ended.stolen 1, exclusive.requested 3"},
		{"leases that can't be renewed, and one that Close does not wait for", func(w *world, c *asynclock.Client) {
			lock(w, c, "key")
			w.store.Every(asynclocktest.Renew.From(0), asynclocktest.Hang)
			w.pass(ttl)
			lock(w, c, "key")
			abandon(c)
		}, "exclusive.acquired.at_once 2, exclusive.ended.closed 1, exclusive.ended.not_renewed 1, exclusive.requested 2"},
		{"one that has ended before its receiver looks", func(w *world, c *asynclock.Client) {
			r := <-c.LockChan(w.Context(), "key", asynclock.WithRenewal(false))
			w.pass(2 * ttl)
			wantError(w, errOf(r.Lease()), asynclock.ErrExpired)
		}, "exclusive.acquired.at_once 1, exclusive.ended.expired 1, exclusive.requested 1"},
	} {
		scene(t, s.name, func(w *world) {
			c := w.client()
			s.tell(w, c)
			w.wantCounts(c, s.want)
		})
	}
}

func TestStatsCountARequestThatPanics(t *testing.T) {
	story(t, func(w *world) {
		w.clients++
		c := w.clientOf(altered{Store: w.store, acquire: func(context.Context, []store.AcquireRequest) error { panic("store") }})
		for _, call := range []func(){
			func() { _, _ = c.Lock(w.Context(), "key") },
			func() { _, _ = c.LockAll(w.Context(), []string{"a", "b"}) },
		} {
			func() {
				defer func() { _ = recover() }()
				call()
			}()
		}
		w.wantCounts(c, "exclusive.refused.unreachable 1, exclusive.requested 1, several.refused.unreachable 1, several.requested 1")
	})
}

// must returns the value of a call that does not fail.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestStatsSayWhatIsSo(t *testing.T) {
	scene(t, "keys", func(w *world) {
		c, other := w.client(), w.client()
		wantKeys := func(want asynclock.Keys) {
			w.Helper()
			w.wait()
			if got := c.Stats().Keys; got != want {
				w.Errorf("keys: got %+v, want %+v", got, want)
			}
		}
		wantKeys(asynclock.Keys{})
		unlock(w, lock(w, c, "kept", asynclock.WithRetention(time.Hour)))
		wantKeys(asynclock.Keys{Used: 1, Retained: 1})
		theirs := lock(w, other, "waited for")
		p := w.ask(w.Context(), c, "waited for")
		wantKeys(asynclock.Keys{Used: 2, Retained: 1, Queued: 1})
		ours := lock(w, c, "wanted")
		w.ask(w.Context(), other, "wanted")
		w.pass(ttl / 2) // a renewal tells
		wantKeys(asynclock.Keys{Used: 3, Retained: 1, Queued: 1, Wanted: 1})
		future := c.LockChan(w.Context(), "lent")
		wantKeys(asynclock.Keys{Used: 4, Retained: 1, Queued: 1, Wanted: 1, Lent: 1})
		unlock(w, claim(w, future))
		unlock(w, ours)
		unlock(w, theirs)
		unlock(w, p.has())
		wantKeys(asynclock.Keys{Used: 1, Retained: 1})
	})
	scene(t, "the store is not heard, as a whole and in a lane", func(w *world) {
		c := w.client()
		for _, e := range []struct {
			event store.Event
			want  bool
		}{
			{store.Event{Kind: store.EventDisconnected}, true},
			{store.Event{Kind: store.EventResync}, false},
			{store.Event{Kind: store.EventDisconnected, OneLane: true, Lane: 1}, true},
			{store.Event{Kind: store.EventDisconnected, OneLane: true, Lane: 2}, true},
			{store.Event{Kind: store.EventResync, OneLane: true, Lane: 1}, true},
			{store.Event{Kind: store.EventResync, OneLane: true, Lane: 2}, false},
			{store.Event{Kind: store.EventDisconnected, OneLane: true, Lane: 1}, true},
			{store.Event{Kind: store.EventResync}, false},
		} {
			w.store.Tell(0, e.event)
			w.wait()
			if got := c.Stats().Deaf; got != e.want {
				w.Errorf("deaf after %+v: got %t", e.event, got)
			}
		}
	})
	scene(t, "the store fails", func(w *world) {
		c := w.client()
		mend := w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Fail(asynclock.ErrUnreachable))
		wantError(w, errOf(c.TryLock(w.Context(), "key")), asynclock.ErrUnreachable)
		if !c.Stats().Failing {
			w.Error("failing: got false")
		}
		w.pass(11 * time.Second)
		if c.Stats().Failing {
			w.Error("failing, with nothing asked for a while: got true")
		}
		wantError(w, errOf(c.TryLock(w.Context(), "key")), asynclock.ErrUnreachable)
		if !c.Stats().Failing {
			w.Error("failing again: got false")
		}
		mend()
		lock(w, c, "key")
		if c.Stats().Failing {
			w.Error("failing, after an answer: got true")
		}
	})
	scene(t, "renewals, and the trust that was left", func(w *world) {
		c := w.client()
		wantTrust := func(from, to float64) {
			w.Helper()
			if got := c.Stats().LeastTrust; got < from || got > to {
				w.Errorf("least trust: got %.3f, want between %v and %v", got, from, to)
			}
		}
		wantTrust(1, 1)
		lock(w, c, "key")
		w.pass(ttl / 2)
		wantTrust(0.6, 0.7)
		w.store.Next(asynclocktest.Renew.Any, asynclocktest.Fail(asynclock.ErrUnreachable), asynclocktest.Slow(0, ttl/5))
		w.pass(ttl)
		if r := c.Stats().Renewals; r.Failed != 2 || r.Done < 3 || r.Calls != r.Done+1 {
			w.Errorf("renewals: got %+v, want one that failed and one that was late, and a call for each", r)
		}
		wantTrust(0.4, 0.5)
		w.pass(31 * time.Second)
		wantTrust(0.6, 0.7)
	})
	scene(t, "releases", func(w *world) {
		c := w.client()
		gone, silent := lock(w, c, "gone"), lock(w, c, "silent")
		must(w.store.Expire(w.Context(), "gone"))
		wantError(w, gone.Unlock(w.Context()), asynclock.ErrLost)
		w.store.Every(asynclocktest.Release.Any, asynclocktest.Hang)
		wantError(w, silent.Unlock(w.Context()), asynclock.ErrOutcomeUnknown)
		w.pass(2 * ttl)
		if got, want := c.Stats().Releases, (asynclock.Releases{Unconfirmed: 1, Lost: 1}); got != want {
			w.Errorf("releases: got %+v, want %+v", got, want)
		}
	})
	if got := (*asynclock.Client)(nil).Stats(); got != (asynclock.Stats{LeastTrust: 1}) {
		t.Errorf("no client: got %+v", got)
	}
}
