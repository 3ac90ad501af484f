// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// A procession is waiters who hold a key one after the other, each for a while.
type procession struct {
	w      *world
	served []string     // in the order they were; complete after wait
	turns  atomic.Int64 // the length of served, for those who don't hold the key
	done   chan struct{}
	n      int
}

func (w *world) procession() *procession { return &procession{w: w, done: make(chan struct{})} }

// join adds a waiter, behind all that joined before.
func (p *procession) join(name string, c *asynclock.Client, hold time.Duration, options ...asynclock.LockOption) {
	p.n++
	go func() {
		defer func() { p.done <- struct{}{} }()
		l, err := c.Lock(p.w.Context(), "key", options...)
		if err != nil {
			p.w.Errorf("%s: %v", name, err)
			return
		}
		p.served = append(p.served, name) // the key guards it
		p.turns.Add(1)
		time.Sleep(hold)
		if err := l.Unlock(p.w.Context()); err != nil {
			p.w.Errorf("%s: %v", name, err)
		}
	}()
	p.w.wait()
}

// wait returns the names in the order in which they were served.
func (p *procession) wait() []string {
	for range p.n {
		<-p.done
	}
	return p.served
}

func TestWaitersOfOneClientAreServedInTheirOrder(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		held := lock(w, c, "key")
		p := w.procession()
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprint(i))
			p.join(want[i], c, time.Duration(i)*time.Millisecond)
		}
		unlock(w, held)
		if got := p.wait(); !slices.Equal(got, want) {
			w.Errorf("served in the order %v, want %v", got, want)
		}
		w.wantUnused()
	})
}

func TestClientsAreServedInTheirOrder(t *testing.T) {
	story(t, func(w *world) {
		held := lock(w, w.client(), "key")
		p := w.procession()
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprint(i))
			p.join(want[i], w.client(), time.Duration(i)*time.Millisecond)
		}
		unlock(w, held)
		if got := p.wait(); !slices.Equal(got, want) {
			w.Errorf("served in the order %v, want %v", got, want)
		}
		w.wantUnused()
	})
}

// However many wait in a client, the store sees one.
func TestClientHasOneWaiterInTheStore(t *testing.T) {
	story(t, func(w *world) {
		holder, c := w.client(), w.client()
		held := lock(w, holder, "key")
		var waiting []<-chan asynclock.Result
		for range 1000 {
			waiting = append(waiting, c.LockChan(w.Context(), "key"))
		}
		w.wait()
		w.wantCalls(asynclocktest.Acquire.From(1), 1)
		w.pass(10 * heartbeat)
		owners := make(map[string]bool)
		for _, c := range w.store.Calls(asynclocktest.Acquire.From(1)) {
			owners[c.Owner] = true
		}
		if got := w.inspect("key").Waiters; got != 1 || len(owners) != 1 {
			w.Errorf("the store has %d waiters and has seen %d owners, want one", got, len(owners))
		}
		unlock(w, held)
		for _, f := range waiting {
			unlock(w, claim(w, f))
		}
		w.wantUnused()
	})
}

// The limit counts those who wait here, and the clients that wait in the store.
func TestQueueLimit(t *testing.T) {
	scene(t, "in the client", func(w *world) {
		c := w.client(asynclock.WithQueueLimit(2))
		held := lock(w, c, "key")
		first, second := w.ask(w.Context(), c, "key"), w.ask(w.Context(), c, "key")
		before := w.calls(asynclocktest.Any)
		_, err := c.Lock(w.Context(), "key")
		wantError(w, err, asynclock.ErrQueueFull)
		wantOp(w, err, "lock", "key")
		_, err = (<-c.LockChan(w.Context(), "key")).Lease()
		wantError(w, err, asynclock.ErrQueueFull)
		if got := w.calls(asynclocktest.Any); got != before {
			w.Errorf("the store was asked %d times, want never: the client knows", got-before)
		}
		third := w.ask(w.Context(), c, "key", asynclock.WithQueueLimit(3))
		unlock(w, held)
		for _, p := range []*pending{first, second, third} {
			unlock(w, p.get())
		}
	})
	scene(t, "in the store", func(w *world) {
		held := lock(w, w.client(), "key")
		first, second := w.ask(w.Context(), w.client(), "key"), w.ask(w.Context(), w.client(), "key")
		c := w.client()
		_, err := c.Lock(w.Context(), "key", asynclock.WithQueueLimit(2))
		wantError(w, err, asynclock.ErrQueueFull)
		third := w.ask(w.Context(), c, "key", asynclock.WithQueueLimit(3))
		w.pass(10 * heartbeat) // who has a place keeps it
		unlock(w, held)
		for _, p := range []*pending{first, second, third} {
			unlock(w, p.get())
		}
		w.wantUnused()
	})
	scene(t, "for each waiter its own", func(w *world) {
		held := lock(w, w.client(), "key")
		remote := w.ask(w.Context(), w.client(), "key")
		c := w.client()
		w.store.Next(asynclocktest.Acquire.From(2), asynclocktest.Slow(10*time.Millisecond, 10*time.Millisecond))
		refused := w.ask(w.Context(), c, "key", asynclock.WithQueueLimit(1))
		queued := w.ask(w.Context(), c, "key", asynclock.WithQueueLimit(2))
		w.pass(time.Second)
		wantError(w, refused.ended(), asynclock.ErrQueueFull)
		unlock(w, held)
		unlock(w, remote.has())
		unlock(w, queued.has())
		w.wantUnused()
	})
	scene(t, "not for those who have waited", func(w *world) {
		c := w.client(asynclock.WithQueueLimit(2))
		held := lock(w, c, "key")
		local := w.ask(w.Context(), c, "key", asynclock.WithDescription("on other terms"))
		remote := []*pending{w.ask(w.Context(), w.client(), "key"), w.ask(w.Context(), w.client(), "key")}
		unlock(w, held) // the local one queues behind two
		local.waits()
		for _, p := range remote {
			unlock(w, p.has())
		}
		unlock(w, local.has())
	})
}

// Each waiter gets what it asked for, also behind others who asked for something
// else.
func TestWaitersOfOneClientMayAskForDifferentTerms(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		p := w.procession()
		var want []string
		for i := range 12 {
			name := fmt.Sprintf("%d s for %d", 10+i%3, i%2)
			want = append(want, name)
			p.join(name, c, 100*time.Millisecond,
				asynclock.WithTTL(time.Duration(10+i%3)*time.Second), asynclock.WithDescription(fmt.Sprint(i%2)))
		}
		if got := p.wait(); !slices.Equal(got, want) {
			w.Errorf("served in the order %v, want %v", got, want)
		}
		var asked []string
		for _, call := range w.store.Calls(asynclocktest.Any) {
			r := call.Acquire
			if call.Op == asynclocktest.Release {
				if call.Release.Requeue == nil {
					continue
				}
				r = *call.Release.Requeue
			} else if call.Op != asynclocktest.Acquire {
				continue
			}
			asked = append(asked, fmt.Sprintf("%d s for %s", r.TTL/time.Second, r.Description))
		}
		if !slices.Equal(asked, want) {
			w.Errorf("the store was asked for %v, want %v", asked, want)
		}
		w.wantUnused()
	})
}

// A waiter that leaves a queue delays nobody.
func TestLeavingTheQueue(t *testing.T) {
	for leaves, name := range []string{"the first", "one in the middle", "the last"} {
		for _, same := range []bool{true, false} {
			scene(t, fmt.Sprintf("%s, same terms %v", name, same), func(w *world) {
				holder, c := w.client(), w.client()
				held := lock(w, holder, "key")
				var waiting []*pending
				var leave context.CancelFunc
				for i := range 3 {
					ctx, cancel := context.WithCancel(w.Context())
					defer cancel()
					if i == leaves {
						leave = cancel
					}
					var options []asynclock.LockOption
					if !same {
						options = append(options, asynclock.WithDescription(fmt.Sprint(i)))
					}
					waiting = append(waiting, w.ask(ctx, c, "key", options...))
				}
				owner := w.store.Calls(asynclocktest.Acquire.From(1))[0].Owner
				leave()
				wantError(w, waiting[leaves].ended(), context.Canceled)
				if got := w.inspect("key").Waiters; got != 1 {
					w.Errorf("the store has %d waiters, want one", got)
				}
				w.pass(2 * heartbeat)
				asked := w.store.Calls(asynclocktest.Acquire.From(1))
				if kept := asked[len(asked)-1].Owner == owner; kept != (same || leaves != 0) {
					w.Errorf("the place in the store was kept: got %v, want %v", kept, same || leaves != 0)
				}
				unlock(w, held)
				for i, p := range waiting {
					if i != leaves {
						unlock(w, p.get())
					}
				}
				w.wait()
				w.wantUnused()
			})
		}
	}
}

// The last one to leave takes the client out of the store's queue.
func TestLeavingWithdrawsTheClient(t *testing.T) {
	story(t, func(w *world) {
		holder, leaver, stayer := w.client(), w.client(), w.client()
		held := lock(w, holder, "key")
		ctx, cancel := context.WithCancel(w.Context())
		first, second := w.ask(ctx, leaver, "key"), w.ask(ctx, leaver, "key")
		p := w.ask(w.Context(), stayer, "key")
		cancel()
		wantError(w, first.ended(), context.Canceled)
		wantError(w, second.ended(), context.Canceled)
		if got := w.inspect("key").Waiters; got != 1 {
			w.Errorf("the store has %d waiters, want one", got)
		}
		unlock(w, held)
		unlock(w, p.has())
		w.wantUnused()
	})
}

// An owner that the store says is gone is over; the waiter begins anew.
func TestWaiterWhoseOwnerIsGoneBeginsAnew(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		owner := w.store.Calls(asynclocktest.Acquire.From(1))[0].Owner
		w.session().Release(w.Context(), []store.ReleaseRequest{{Key: "key", Owner: owner, Uncertain: true}})
		w.pass(2 * heartbeat)
		p.waits()
		unlock(w, held)
		unlock(w, p.has())
		w.wantUnused()
	})
}

// A store that says something final is believed, by everyone who waits.
func TestFinalErrorOfTheStoreEndsTheWaiting(t *testing.T) {
	for _, final := range []error{asynclock.ErrDenied, asynclock.ErrForeignData, errors.New("disk on fire")} {
		scene(t, final.Error(), func(w *world) {
			c := w.client()
			w.store.Every(asynclocktest.Acquire.On("key"), func(context.Context, func()) error {
				time.Sleep(10 * time.Millisecond)
				return final
			})
			waiting := []*pending{w.ask(w.Context(), c, "key"), w.ask(w.Context(), c, "key")}
			future := c.LockChan(w.Context(), "key")
			w.pass(10 * time.Millisecond)
			for _, p := range waiting {
				wantError(w, p.ended(), final)
			}
			_, err := (<-future).Lease()
			wantError(w, err, final)
			_, err = c.TryLock(w.Context(), "key")
			wantError(w, err, final)
			wantOp(w, err, "try lock", "key")
			if errors.Is(err, asynclock.ErrUnreachable) || errors.Is(err, asynclock.ErrHeld) {
				w.Errorf("got error %v, want only what the store said", err)
			}
		})
	}
}

// Waiters live through a short outage, and are told of a long one.
func TestWaitingDuringAnOutage(t *testing.T) {
	for _, fault := range []struct {
		name  string
		fault asynclocktest.Fault
		tries int // of one who waits patience, at most
	}{{"refusing", asynclocktest.Refuse, 30}, {"hanging", asynclocktest.Hang, 5}} {
		scene(t, "short, "+fault.name, func(w *world) {
			holder, waiter := w.client(asynclock.WithTTL(time.Minute)), w.client(asynclock.WithTTL(time.Minute))
			held := lock(w, holder, "key")
			p := w.ask(w.Context(), waiter, "key")
			stop := w.store.Every(asynclocktest.Any, fault.fault)
			w.pass(patience)
			stop()
			p.waits()
			w.pass(30 * time.Second)
			unlock(w, held)
			unlock(w, p.get())
			w.wantUnused()
		})
		scene(t, "long, "+fault.name, func(w *world) {
			c := w.client()
			w.store.Every(asynclocktest.Any, fault.fault)
			before := time.Now()
			_, err := c.Lock(w.Context(), "key")
			took := time.Since(before)
			wantError(w, err, asynclock.ErrUnreachable)
			wantOp(w, err, "lock", "key")
			if errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("got %v, whose context has not ended", err)
			}
			if took < patience || took > 2*patience+callTimeout {
				w.Errorf("gave up after %v, want some time after %v", took, patience)
			}
			if tried := w.calls(asynclocktest.Acquire.Any); tried > fault.tries {
				w.Errorf("tried %d times in %v, want at most %d: ever less often", tried, took, fault.tries)
			}
		})
	}
}
