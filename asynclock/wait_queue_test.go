// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
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
		wantError(w, errOf((<-c.LockChan(w.Context(), "key")).Lease()), asynclock.ErrQueueFull)
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
		wantError(w, errOf(c.Lock(w.Context(), "key", asynclock.WithQueueLimit(2))), asynclock.ErrQueueFull)
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
