// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// The stories of this file are about answers that grant the key so late that
// too little of its TTL is left: W3.

// A lease that is held for hold at most has a TTL of 130 ms. Answers that take
// a trip of 95 ms come too late for it.
const (
	trip = 95 * time.Millisecond
	hold = 100 * time.Millisecond
)

// stoodStill is a request whose process stands still before it reads the answer.
// A process that stands still has no timeouts.
func stoodStill(d time.Duration) asynclocktest.Fault {
	return func(_ context.Context, carry func()) error {
		carry()
		time.Sleep(d)
		return nil
	}
}

// A process that was stopped once loses its place, not its wait.
func TestGrantThatCameTooLateIsGivenBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		late     time.Duration
		requests int
	}{
		{"just in time", trusted(ttl) - ttl/5, 1},
		{"just too late", trusted(ttl) - ttl/5 + time.Microsecond, 2},
		{"after its TTL", time.Hour, 2},
	} {
		scene(t, c.name, func(w *world) {
			w.store.Next(asynclocktest.Acquire.On("key"), stoodStill(c.late))
			l := lock(w, w.client(), "key", asynclock.WithQueueLimit(1))
			wantValid(w, l)
			asked := w.store.Calls(asynclocktest.Acquire.On("key"))
			if len(asked) != c.requests {
				w.Fatalf("asked the store %d times, want %d", len(asked), c.requests)
			}
			last := asked[c.requests-1]
			wantTime(w, "trust deadline", l.Deadline(), last.At.Add(trusted(ttl)))
			if c.requests > 1 {
				if last.Owner == asked[0].Owner {
					w.Error("the second request is of the first one's owner, want a new one")
				}
				if pause := last.At.Sub(asked[0].At) - c.late; pause < 40*time.Millisecond || pause > 60*time.Millisecond {
					w.Errorf("the second request came %v after the answer, want some 50ms", pause)
				}
				gone := w.store.Calls(asynclocktest.Release.On("key"))
				if len(gone) != 1 || gone[0].Owner != asked[0].Owner || gone[0].Release.Uncertain {
					w.Errorf("released %+v, want the first owner, and nothing uncertain", gone)
				}
			}
			unlock(w, l)
			w.wantUnused()
		})
	}
}

// far makes every request of a client take that long, half of it on its way back.
func far(w *world, client int, trip time.Duration) {
	w.store.Every(asynclocktest.Match(asynclocktest.Any).From(client), asynclocktest.Slow(trip/2, trip/2))
}

// A client that is too far away for its TTL ends with an error that says so. It
// withholds the key from nobody meanwhile.
func TestStoreTooSlowForTheTTLWithholdsNothing(t *testing.T) {
	story(t, func(w *world) {
		distant, near := w.client(asynclock.WithMaxHold(hold)), w.client()
		far(w, 0, trip)
		sent := time.Now()
		p := w.ask(w.Context(), distant, "key")
		served := 0
		for time.Since(sent) < patience-time.Second {
			asked := time.Now()
			l := lock(w, near, "key")
			if waited := time.Since(asked); waited > trip+time.Millisecond {
				w.Fatalf("the client nearby waited for %v, want at most a round trip, of %v", waited, trip)
			}
			unlock(w, l)
			served++
			w.pass(time.Millisecond)
		}
		p.wantEnd(asynclock.ErrTooSlow, asynclock.ErrUnreachable)
		if text := p.err.Error(); !strings.Contains(text, "95ms") || !strings.Contains(text, "130ms") {
			w.Errorf("got error %q, want it to name the round trip, 95ms, and the TTL, 130ms", text)
		}
		wantTime(w, "end", p.at, sent.Add(patience))
		if requests := w.calls(asynclocktest.Acquire.From(0)); requests > 20 {
			w.Errorf("the distant client asked %d times, want it to pause in between", requests)
		}
		w.pass(time.Second)
		w.wantUnused()
		if served == 0 {
			w.Error("the client nearby was never served")
		}
	})
}

// wantEnd waits until an acquisition fails.
func (p *pending) wantEnd(targets ...error) {
	p.w.Helper()
	<-p.done
	wantError(p.w, p.err, targets...)
}

// So does one that queues in between: that the store answers "wait" as late
// does not make the next grant come in time.
func TestAnswersBetweenLateGrantsDoNotProlongTheWait(t *testing.T) {
	story(t, func(w *world) {
		distant, near := w.client(asynclock.WithMaxHold(hold)), w.client()
		far(w, 0, trip)
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() { // it has the key nearly all the time
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
				}
				l, err := near.Lock(w.Context(), "key")
				if err != nil {
					w.Error(err)
					return
				}
				time.Sleep(time.Second)
				l.Unlock(w.Context())
			}
		}()
		w.wait()
		p := w.ask(w.Context(), distant, "key")
		p.wantEnd(asynclock.ErrTooSlow)
		if waited := p.at.Sub(w.store.Calls(asynclocktest.Acquire.From(0))[0].At); waited > 4*patience {
			w.Errorf("waited for %v, want not much more than %v", waited, patience)
		}
		close(stop)
		<-done
	})
}

// An answer in time proves that the store is fast enough.
func TestAnswerInTimeEndsARowOfLateGrants(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(asynclock.WithMaxHold(hold)), w.client()
		w.store.Next(asynclocktest.Acquire.From(0), asynclocktest.Slow(trip/2, trip/2))
		p := w.ask(w.Context(), c, "key")
		w.pass(trip)
		theirs := lock(w, other, "key")
		w.pass(time.Hour) // it is told to wait, in time
		p.waits()
		far(w, 0, trip)
		w.store.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop) // a grant just after a heartbeat would be in time
		unlock(w, theirs)
		w.pass(patience - time.Millisecond) // by now it is late for longer than anybody's patience
		p.waits()
		p.wantEnd(asynclock.ErrTooSlow)
	})
}

// The release of a key that came too late says that an earlier request may
// still take effect.
func TestLateGrantIsGivenBackUncertainAfterALostRequest(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithMaxHold(hold))
		w.store.Next(asynclocktest.Acquire.On("key"), asynclocktest.Hang, asynclocktest.Slow(trip/2, trip/2))
		unlock(w, lock(w, c, "key"))
		gone := w.store.Calls(asynclocktest.Release.On("key"))
		if len(gone) == 0 || !gone[0].Release.Uncertain {
			w.Errorf("released %+v, want the first release uncertain", gone)
		}
	})
}

// It was admitted to the store's queue before, and comes back to its end.
func TestLateGrantIsNotTurnedAwayByAFullQueue(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(asynclock.WithMaxHold(hold), asynclock.WithQueueLimit(1)), w.client()
		w.store.Next(asynclocktest.Acquire.From(0), asynclocktest.Slow(0, trip))
		p := w.ask(w.Context(), c, "key")
		theirs, behind := w.ask(w.Context(), other, "key"), w.ask(w.Context(), w.client(), "key")
		w.pass(trip)
		l := theirs.has()
		w.pass(time.Second)
		p.waits()
		unlock(w, l)
		unlock(w, behind.has())
		unlock(w, p.get())
	})
}

// A message that is too old to be believed still makes the waiter ask. If the
// answer comes too late as well, the key is given back.
func TestLateMessageAndLateAnswerGiveTheKeyBack(t *testing.T) {
	story(t, func(w *world) {
		holder, c, other := w.client(), w.client(asynclock.WithMaxHold(hold)), w.client()
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), c, "key")
		w.pass(time.Second)
		before := w.calls(asynclocktest.Acquire.From(1))
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Slow(trip/2, trip/2))
		q := w.ask(w.Context(), other, "key")
		unlock(w, held)
		w.pass(trip - time.Millisecond)
		q.waits()
		w.pass(time.Millisecond)
		p.waits()
		if got := w.calls(asynclocktest.Acquire.From(1)) - before; got != 1 {
			w.Errorf("asked the store %d times after the message, want once", got)
		}
		unlock(w, q.has())
		unlock(w, p.get())
		w.pass(time.Second)
		w.wantUnused()
	})
}

// TryLock does not wait: its first answer that comes too late is its error.
func TestTryLockFailsWhenItsGrantCameTooLate(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Acquire.From(0), stoodStill(ttl+time.Second))
		tried := w.try(w.Context(), c)
		w.pass(ttl)
		theirs := lock(w, w.client(), "key")
		<-tried.done
		err := tried.err
		wantError(w, err, asynclock.ErrTooSlow, asynclock.ErrUnreachable)
		if errors.Is(err, asynclock.ErrHeld) {
			w.Errorf("got error %v, want none about a holder", err)
		}
		w.wait()
		wantValid(w, theirs)
		if got := w.inspect("key").Waiters; got != 0 {
			w.Errorf("the store has %d waiters, want none", got)
		}
		w.wantCalls(asynclocktest.Acquire.From(0), 1)
	})
}

// Those behind such a TryLock wait on.
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
