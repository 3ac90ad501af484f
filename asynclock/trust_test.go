// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// wantLost fails the test unless the lease ended with cause, and for everyone
// who can look at it.
func wantLost(tb testing.TB, l *asynclock.Lease, causes ...error) {
	tb.Helper()
	if l.Valid(0) {
		tb.Error("a lost lease is valid")
	}
	err := l.Err()
	wantError(tb, err, append(causes, asynclock.ErrLost)...)
	select {
	case <-l.Done():
	default:
		tb.Error("a lost lease is not done")
	}
	if got := context.Cause(l.Context()); !errors.Is(got, err) {
		tb.Errorf("cause of the context: got %v, want %v", got, err)
	}
	if got := l.Context().Err(); !errors.Is(got, context.Canceled) {
		tb.Errorf("error of the context: got %v, want %v", got, context.Canceled)
	}
}

func TestLeaseWithoutRenewalExpires(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		sent := time.Now()
		l := lock(w, c, "key", asynclock.WithRenewal(false))
		<-l.Done()
		wantTime(w, "end", time.Now(), sent.Add(trusted(ttl)))
		wantLost(w, l, asynclock.ErrExpired)
		w.wantCalls(asynclocktest.Renew.On("key"), 0)
	})
}

// A process that does not run can't notice in time that its lease has ended.
// When it asks, it is told, without waiting for the watchdog.
func TestPausedClientIsToldTheTruthWhenItAsks(t *testing.T) {
	for _, c := range []struct {
		name string
		ask  func(*world, *asynclock.Lease) bool // says whether the lease lasts
	}{
		{"Valid", func(_ *world, l *asynclock.Lease) bool { return l.Valid(0) }},
		{"Err", func(_ *world, l *asynclock.Lease) bool { return l.Err() == nil }},
		{"Renew", func(w *world, l *asynclock.Lease) bool { return l.Renew(w.Context(), ttl) == nil }},
		{"Unlock", func(w *world, l *asynclock.Lease) bool { return !errors.Is(l.Unlock(w.Context()), asynclock.ErrLost) }},
		{"UnlockChan", func(w *world, l *asynclock.Lease) bool {
			return !errors.Is(<-l.UnlockChan(w.Context()), asynclock.ErrLost)
		}},
	} {
		scene(t, c.name, func(w *world) {
			holder, brake := w.braked()
			other := w.client()
			l := lock(w, holder, "key")
			done := l.Done()
			p := w.ask(w.Context(), other, "key")
			goOn := brake.pull(w)
			w.pass(time.Until(l.Deadline()) - time.Nanosecond)
			wantValid(w, l)
			w.pass(time.Nanosecond)
			p.waits()
			select {
			case <-done:
				w.Fatal("the lease is done while the watchdog stands still")
			default:
			}
			if c.ask(w, l) {
				w.Error("a lease past its trust deadline lasts")
			}
			wantLost(w, l, asynclock.ErrExpired)
			unlock(w, p.get())
			goOn()
		})
	}
}

// A lease that the paused client would claim, join or pass on is past its trust
// deadline, too.
func TestPausedClientHandsOutNothingThatHasEnded(t *testing.T) {
	scene(t, "a future", func(w *world) {
		c, brake := w.braked()
		future := c.LockChan(w.Context(), "key")
		w.wait()
		goOn := brake.pull(w)
		w.pass(ttl)
		wantError(w, errOf((<-future).Lease()), asynclock.ErrExpired)
		goOn()
	})
	scene(t, "a joined lease", func(w *world) {
		c, brake := w.braked()
		l := lock(w, c, "key")
		ctx := l.Context()
		goOn := brake.pull(w)
		w.pass(ttl)
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Millisecond)
		defer cancel()
		if again, err := c.Lock(short, "key"); err == nil && again.Token() == l.Token() {
			w.Error("joined a lease that has ended")
		}
		goOn()
		wantLost(w, l, asynclock.ErrExpired)
	})
	scene(t, "a handoff", func(w *world) {
		c, brake := w.braked()
		l := lock(w, c, "key")
		p := w.ask(w.Context(), c, "key")
		goOn := brake.pull(w)
		w.pass(ttl)
		wantError(w, l.Unlock(w.Context()), asynclock.ErrExpired)
		next := p.has()
		wantTime(w, "trust deadline of the next", next.Deadline(), time.Now().Add(trusted(ttl)))
		goOn()
	})
}

// Whatever the network does, the lease has ended before the store can give the
// key to another client.
func TestCutOffHolderHasEndedBeforeTheNextBegins(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault asynclocktest.Fault
		cause []error
	}{
		{"refused", asynclocktest.Refuse, []error{asynclock.ErrNotRenewed, asynclock.ErrUnreachable}},
		{"hanging", asynclocktest.Hang, []error{asynclock.ErrNotRenewed, asynclock.ErrUnreachable, asynclock.ErrOutcomeUnknown}},
		{"denied", asynclocktest.Fail(asynclock.ErrDenied), []error{asynclock.ErrNotRenewed, asynclock.ErrDenied}},
	} {
		scene(t, c.name, func(w *world) {
			holder, waiter := w.client(), w.client()
			l := lock(w, holder, "key")
			p := w.ask(w.Context(), waiter, "key")
			w.pass(ttl + ttl/7) // it has been renewed for a while
			w.store.Every(asynclocktest.Match(asynclocktest.Any).From(0), c.fault)
			renewed := w.store.Calls(asynclocktest.Renew.From(0))
			last := renewed[len(renewed)-1].At
			<-l.Done()
			ended := time.Now()
			wantTime(w, "end", ended, last.Add(trusted(ttl)))
			wantLost(w, l, c.cause...)
			if errors.Is(l.Err(), context.DeadlineExceeded) {
				w.Errorf("got %v, but no context of the holder's has ended", l.Err())
			}
			next := p.get()
			if margin := p.at.Sub(ended); margin < ttl/10 {
				w.Errorf("the next lease began %v after the end of this one, want at least %v", margin, ttl/10)
			}
			if next.Token() <= l.Token() {
				w.Errorf("got token %d after %d, want a larger one", next.Token(), l.Token())
			}
		})
	}
}

func TestForceUnlockEndsTheLeaseAtOnce(t *testing.T) {
	story(t, func(w *world) {
		holder, admin, waiter := w.client(), w.client(), w.client()
		l := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		w.force(admin, "key")
		wantLost(w, l, asynclock.ErrForced)
		next := p.has()
		if next.Token() <= l.Token() {
			w.Errorf("got token %d after %d, want a larger one", next.Token(), l.Token())
		}
		wantError(w, l.Unlock(w.Context()), asynclock.ErrForced)
		w.wait()
		wantValid(w, next)
		unlock(w, next)
		if held, err := admin.ForceUnlock(w.Context(), "key", 0); held || err != nil {
			w.Errorf("force unlock of a free key: got held %v, error %v", held, err)
		}
		w.wantUnused()
	})
}

// A loss is final: the key can be had again, as another lease.
func TestLossIsFinal(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key", asynclock.WithRenewal(false))
		w.pass(ttl)
		wantLost(w, l, asynclock.ErrExpired)
		ended := l.Deadline()
		again := lock(w, c, "key")
		w.pass(ttl)
		wantValid(w, again)
		wantLost(w, l, asynclock.ErrExpired)
		wantTime(w, "deadline of the lost one", l.Deadline(), ended)
		wantError(w, l.Unlock(w.Context()), asynclock.ErrExpired)
		w.wait()
		wantValid(w, again)
		unlock(w, again)
		wantError(w, l.Err(), asynclock.ErrExpired)
		if again.Token() <= l.Token() {
			w.Errorf("got token %d after %d, want a larger one", again.Token(), l.Token())
		}
	})
}

func TestContextOfALease(t *testing.T) {
	type name struct{}
	story(t, func(w *world) {
		c := w.client()
		wait, cancel := context.WithTimeout(context.WithValue(w.Context(), name{}, "value"), time.Second)
		defer cancel()
		l, err := c.Lock(wait, "key")
		if err != nil {
			w.Fatal(err)
		}
		ctx := l.Context()
		if got := ctx.Value(name{}); got != "value" {
			w.Errorf("value: got %v, want that of the context of Lock", got)
		}
		if deadline, ok := ctx.Deadline(); ok {
			w.Errorf("deadline: got %v, want none: it was for the waiting", deadline)
		}
		cancel()
		w.pass(time.Minute)
		wantError(w, ctx.Err(), nil)
		if again := l.Context(); again != ctx || l.Done() != ctx.Done() {
			w.Error("a second call gives another context")
		}
		unlock(w, l)
		wantError(w, context.Cause(ctx), asynclock.ErrUnlocked)
	})
	scene(t, "asked for after the end", func(w *world) {
		l := lock(w, w.client(), "key")
		unlock(w, l)
		<-l.Done()
		wantError(w, context.Cause(l.Context()), asynclock.ErrUnlocked)
	})
}

func TestValidLooksAhead(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key", asynclock.WithRenewal(false))
		left := time.Until(l.Deadline())
		for margin, want := range map[time.Duration]bool{
			0: true, left - 1: true, left: false, left + 1: false,
			math.MaxInt64: false, -time.Hour: true, math.MinInt64: true,
		} {
			if got := l.Valid(margin); got != want {
				w.Errorf("valid for %v with %v left: got %v, want %v", margin, left, got, want)
			}
		}
		w.pass(left)
		for _, margin := range []time.Duration{0, -time.Hour, math.MinInt64} {
			if l.Valid(margin) {
				w.Errorf("valid for %v after the deadline", margin)
			}
		}
	})
}

func TestDeadlineMovesWithRenewalsAndStaysAfterTheEnd(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		first := l.Deadline()
		w.pass(ttl / 2)
		second := l.Deadline()
		if !second.After(first) {
			w.Errorf("the deadline went from %v to %v, want it to move with the renewal", since(first), since(second))
		}
		unlock(w, l)
		w.pass(time.Hour)
		wantTime(w, "deadline after the end", l.Deadline(), second)
	})
}

// promised makes a client of a store that promises less, or more, than it is asked for. One whose server ends
// sessions does.
func (w *world) promised(promise time.Duration) *asynclock.Client {
	w.Helper()
	return w.clientOf(altered{
		Store:    w.store,
		acquired: func(r *store.AcquireReply) { r.TTL = promise },
		renewed:  func(r *store.RenewReply) { r.TTL = promise },
	})
}

// The TTL that the store promises counts, not the TTL that was requested.
func TestAShorterPromiseBoundsTrust(t *testing.T) {
	story(t, func(w *world) {
		start := time.Now()
		lease := lock(w, w.promised(3*time.Second), "key", asynclock.WithRenewal(false))
		<-lease.Done()
		if got := time.Since(start); got > trusted(3*time.Second) {
			w.Errorf("the lease ended after %v, want it before %v", got, trusted(3*time.Second))
		}
		wantError(w, lease.Unlock(w.Context()), asynclock.ErrExpired)
	})
}

// Renewals come as often as the promise needs them, and each moves the trust
// deadline no further than it says.
func TestAShorterPromiseIsRenewedInTime(t *testing.T) {
	story(t, func(w *world) {
		lease := lock(w, w.promised(3*time.Second), "key")
		for range 30 {
			time.Sleep(time.Second)
			if got := time.Until(lease.Deadline()); lease.Err() != nil || got > trusted(3*time.Second) {
				w.Fatalf("lease: got %v and %v of trust, want it valid for at most %v", lease.Err(), got, trusted(3*time.Second))
			}
		}
		if got := w.calls(asynclocktest.Renew.Any); got < 25 || got > 40 {
			w.Errorf("renewals in 30 s of a promise of 3 s: got %d, want one a second", got)
		}
	})
}

// A promise for longer than was asked gives nothing more.
func TestALongerPromiseGivesNoMore(t *testing.T) {
	story(t, func(w *world) {
		lease := lock(w, w.promised(time.Hour), "key", asynclock.WithRenewal(false))
		if got := time.Until(lease.Deadline()); got > trusted(ttl) {
			w.Errorf("trust: got %v, want at most %v", got, trusted(ttl))
		}
	})
}

// A store that knows of a loss before the next renewal says so, and why.
func TestALossThatTheStoreTells(t *testing.T) {
	for _, c := range []struct{ told, want error }{
		{fmt.Errorf("%w: the session was closed", asynclock.ErrExpired), asynclock.ErrExpired},
		{nil, asynclock.ErrExpired},
		{context.Canceled, asynclock.ErrExpired}, // no cause of a loss
		{asynclock.ErrStolen, asynclock.ErrStolen},
	} {
		scene(t, fmt.Sprint(c.told), func(w *world) {
			lease := lock(w, w.client(), "key")
			owner := w.store.Calls(asynclocktest.Acquire.Any)[0].Owner
			w.store.Tell(0, store.Event{Kind: store.EventLost, Owner: owner, Err: c.told})
			w.wait()
			wantError(w, lease.Err(), c.want)
		})
	}
}
