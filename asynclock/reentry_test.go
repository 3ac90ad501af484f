// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// join asks for the key under ctx with re-entry, and fails unless that joins l at once.
func (w *world) join(ctx context.Context, c *asynclock.Client, l *asynclock.Lease) *asynclock.Lease {
	w.Helper()
	before := w.calls(asynclocktest.Any)
	joined, err := c.Lock(ctx, l.Key(), asynclock.WithReentry(true), asynclock.WithWait(time.Minute))
	if err != nil {
		w.Fatal(err)
	}
	if joined == l || joined.Token() != l.Token() || joined.Key() != l.Key() {
		w.Errorf("got a lease of %q with token %d, want another one of %q with token %d",
			joined.Key(), joined.Token(), l.Key(), l.Token())
	}
	if got := w.calls(asynclocktest.Any) - before; got != 0 {
		w.Errorf("joining took %d requests, want none", got)
	}
	return joined
}

func TestAskingUnderALeaseJoinsIt(t *testing.T) {
	type name struct{}
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		l := lock(w, c, "key")
		p := w.ask(w.Context(), other, "key")
		ctx, cancel := context.WithCancel(context.WithValue(l.Context(), name{}, "value"))
		joined := w.join(ctx, c, l)
		if got := joined.Context().Value(name{}); got != "value" {
			w.Errorf("value: got %v, want that of the context it was asked for with", got)
		}
		cancel()
		tried, err := c.TryLock(l.Context(), "key", asynclock.WithReentry(true))
		if err != nil {
			w.Fatal(err)
		}
		again := w.join(joined.Context(), c, l)

		unlock(w, l)
		wantError(w, l.Err(), asynclock.ErrUnlocked)
		wantError(w, context.Cause(l.Context()), asynclock.ErrUnlocked)
		for _, lease := range []*asynclock.Lease{joined, tried, again} {
			wantValid(w, lease)
		}
		w.pass(10 * ttl) // it is renewed as before
		p.waits()
		unlock(w, joined)
		unlock(w, joined)
		unlock(w, again)
		p.waits()
		wantValid(w, tried)
		unlock(w, tried)
		unlock(w, p.has())
		w.wantUnused()
	})
}

// The key is given back by the last Unlock, in whatever order they come.
func TestLastUnlockOfAJoinedHoldingReleases(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		scene(t, fmt.Sprint(order), func(w *world) {
			c := w.client()
			first := lock(w, c, "key")
			second := w.join(first.Context(), c, first)
			leases := []*asynclock.Lease{first, second, w.join(second.Context(), c, first)}
			for i, n := range order {
				if got := w.calls(asynclocktest.Release.On("key")); got != 0 {
					w.Errorf("released after %d of 3 unlocks", i)
				}
				wantValid(w, leases[n])
				unlock(w, leases[n])
			}
			w.wantUnused()
			w.wantCalls(asynclocktest.Release.On("key"), 1)
		})
	}
}

// Leases of different keys nest: a context was made under all of them.
func TestNestedLeasesAreAllJoined(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		a := lock(w, c, "a")
		b, err := c.Lock(a.Context(), "b")
		if err != nil {
			w.Fatal(err)
		}
		inner, err := c.Lock(b.Context(), "c")
		if err != nil {
			w.Fatal(err)
		}
		var joined []*asynclock.Lease
		for _, l := range []*asynclock.Lease{a, b, inner} {
			joined = append(joined, w.join(inner.Context(), c, l))
		}
		short, cancel := context.WithTimeout(a.Context(), time.Millisecond)
		defer cancel()
		_, err = c.Lock(short, "b") // a was not made under b
		wantError(w, err, context.DeadlineExceeded)
		for _, l := range append(joined, a, b, inner) {
			unlock(w, l)
		}
		w.wantUnused()
	})
}

// bothWays tells a story without re-entry, which is the default, and with it.
func bothWays(t *testing.T, tell func(w *world, reentry asynclock.LockOption)) {
	t.Helper()
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprintf("WithReentry(%v)", on), func(t *testing.T) {
			story(t, func(w *world) { tell(w, asynclock.WithReentry(on)) })
		})
	}
}

// Only the work that a lease belongs to joins it.
func TestStrangersWaitLikeAnyoneElse(t *testing.T) {
	bothWays(t, func(w *world, reentry asynclock.LockOption) {
		c, other := w.client(reentry), w.client(reentry)
		l := lock(w, c, "key")
		for _, who := range []struct {
			name   string
			client *asynclock.Client
			ctx    context.Context
		}{
			{"an unrelated context", c, w.Context()},
			{"another client", other, l.Context()},
		} {
			short, cancel := context.WithTimeout(who.ctx, time.Second)
			defer cancel()
			if _, err := who.client.Lock(short, "key"); err == nil {
				w.Errorf("%s joined the lease", who.name)
			} else {
				wantError(w, err, context.DeadlineExceeded)
			}
			wantError(w, errOf(who.client.TryLock(who.ctx, "key")), asynclock.ErrHeld)
		}
		unlock(w, l)
	})
}

// A lease that has ended is not joined: its context only has its values.
func TestEndedLeaseIsNotJoined(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*world, *asynclock.Lease)
	}{
		{"unlocked", func(w *world, l *asynclock.Lease) { unlock(w, l) }},
		{"lost", func(w *world, l *asynclock.Lease) { w.pass(ttl) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothWays(t, func(w *world, reentry asynclock.LockOption) {
				client := w.client(reentry)
				l := lock(w, client, "key", asynclock.WithRenewal(false))
				ctx := l.Context()
				c.end(w, l)
				next, err := client.Lock(context.WithoutCancel(ctx), "key")
				if err != nil {
					w.Fatal(err)
				}
				if next.Token() <= l.Token() {
					w.Errorf("got token %d after %d, want a larger one", next.Token(), l.Token())
				}
				unlock(w, next)
				wantError(w, errOf(client.Lock(ctx, "key")), context.Canceled, l.Err())
			})
		})
	}
}

// A context made under any lease of the holding joins it, also after that lease's own Unlock.
func TestHoldingIsJoinedWhileAnyPartOfItLasts(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		ctx := context.WithoutCancel(l.Context())
		joined := w.join(ctx, c, l)
		unlock(w, l)
		again := w.join(ctx, c, l)
		unlock(w, joined)
		wantValid(w, again)
		unlock(w, again)
		w.wantUnused()
	})
}

func TestLossEndsAllThatJoined(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key", asynclock.WithRenewal(false))
		first, second := w.join(l.Context(), c, l), w.join(l.Context(), c, l)
		unlock(w, l)
		done := first.Done()
		<-done
		wantLost(w, first, asynclock.ErrExpired)
		wantLost(w, second, asynclock.ErrExpired)
		wantError(w, l.Err(), asynclock.ErrUnlocked)
		wantError(w, l.Unlock(w.Context()), nil)
		wantError(w, first.Unlock(w.Context()), asynclock.ErrExpired)
		w.wait()
		if !w.inspect("key").Held {
			w.Error("the key is free while one who may not have noticed the loss has not unlocked")
		}
		wantError(w, second.Unlock(w.Context()), asynclock.ErrExpired)
		w.wait()
		w.wantUnused()
	})
}

func TestMaxHoldOfTheFirstBoundsAllThatJoin(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		l := lock(w, c, "key", asynclock.WithMaxHold(time.Minute))
		w.pass(50 * time.Second)
		joined, err := c.Lock(l.Context(), "key")
		if err != nil {
			w.Fatal(err)
		}
		w.pass(10 * time.Second)
		wantLost(w, joined, asynclock.ErrMaxHold)
		wantLost(w, l, asynclock.ErrMaxHold)
	})
}

// A future under a lease joins it when it is claimed. Until then it keeps nothing. If the holding
// ends first, the future waits for the key like a call of Lock.
func TestFutureUnderALeaseJoinsAtItsClaim(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		l := lock(w, c, "key")
		claimed, forgotten, late := c.LockChan(l.Context(), "key"), c.LockChan(l.Context(), "key"), c.LockChan(context.WithoutCancel(l.Context()), "key")
		result := <-claimed
		joined, err := result.Lease()
		if err != nil {
			w.Fatal(err)
		}
		if same, err := result.Lease(); same != joined || err != nil {
			w.Errorf("claimed again: got %v, %v; want the same lease", same, err)
		}
		unlock(w, l)
		wantValid(w, joined)
		unlock(w, joined)
		w.wait()
		wantError(w, errOf((<-forgotten).Lease()), context.Canceled)
		next := claim(w, late)
		if next.Token() <= l.Token() {
			w.Errorf("token %d after %d", next.Token(), l.Token())
		}
		wantValid(w, next)
		unlock(w, next)
		w.wantUnused()
	})
}

// A result that was received shares the holding from then on.
func TestResultThatWasReceivedUnderALeaseKeepsItsHolding(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		l := lock(w, c, "key")
		late := <-c.LockChan(context.WithoutCancel(l.Context()), "key")
		unlock(w, l)
		p := w.ask(w.Context(), w.client(), "key")
		w.pass(10 * ttl)
		p.waits()
		joined, err := late.Lease()
		if err != nil {
			w.Fatal(err)
		}
		wantValid(w, joined)
		unlock(w, joined)
		unlock(w, p.get())
		w.wantUnused()
	})
}

// Joining futures whose lease is lost wait their turn, in their order.
func TestFuturesUnderALostLeaseWaitInOrder(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		l := lock(w, c, "key", asynclock.WithMaxHold(time.Second))
		ctx := context.WithoutCancel(l.Context())
		first, second := c.LockChan(ctx, "key"), c.LockChan(ctx, "key")
		w.pass(time.Second)
		wantLost(w, l, asynclock.ErrMaxHold)
		wantError(w, l.Unlock(w.Context()), asynclock.ErrMaxHold)
		got := claim(w, first)
		w.wait()
		if len(second) != 0 {
			w.Error("the second future has a result while the first one's lease lasts")
		}
		unlock(w, got)
		got = claim(w, second)
		unlock(w, got)
		w.wantUnused()
	})
}

// Close fails a future that has not joined yet, and whose lease it has to give up.
func TestCloseFailsAFutureThatHasNotJoined(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		l := lock(w, c, "key")
		future := c.LockChan(context.WithoutCancel(l.Context()), "key")
		abandon(c)
		wantError(w, errOf((<-future).Lease()), asynclock.ErrClosed)
	})
}

// A context that ends takes a future with it that has not joined yet.
func TestContextOfAFutureThatHasNotJoinedEnds(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		l := lock(w, c, "key")
		ctx, cancel := context.WithCancel(context.WithoutCancel(l.Context()))
		future := c.LockChan(ctx, "key")
		cancel()
		w.wait()
		unlock(w, l)
		wantError(w, errOf((<-future).Lease()), context.Canceled)
		w.wantUnused()
	})
}

// Options that a joined lease can't have are refused; those that it has anyway are not.
func TestOptionsOfAJoinedLease(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithMinHold(0), asynclock.WithReentry(true))
		l := lock(w, c, "key", asynclock.WithMaxHold(time.Minute), asynclock.WithTTL(10*time.Second))
		for name, option := range map[string]asynclock.LockOption{
			"WithTTL":         asynclock.WithTTL(ttl), // the client's default, but not this lease's
			"WithMaxHold":     asynclock.WithMaxHold(0),
			"WithMinHold":     asynclock.WithMinHold(time.Second),
			"WithRetention":   asynclock.WithRetention(time.Second),
			"WithRenewal":     asynclock.WithRenewal(false),
			"WithDescription": asynclock.WithDescription("somebody else"),
		} {
			_, err := c.Lock(l.Context(), "key", option)
			wantError(w, err, asynclock.ErrInvalidOption)
			if err != nil && !strings.Contains(err.Error(), name) {
				w.Errorf("got %q, want %s named", err, name)
			}
			wantError(w, errOf((<-c.LockChan(l.Context(), "key", option)).Lease()), asynclock.ErrInvalidOption)
		}
		joined, err := c.Lock(l.Context(), "key", asynclock.WithMaxHold(time.Minute), asynclock.WithTTL(10*time.Second),
			asynclock.WithWait(0), asynclock.WithQueueLimit(1))
		if err != nil {
			w.Fatal(err)
		}
		unlock(w, joined)
		unlock(w, l)
	})
}
