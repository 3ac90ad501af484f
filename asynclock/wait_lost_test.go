// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// The stories that follow are about messages, requests and replies that are
// lost.

// A request whose reply is lost is sent again for the same owner, and has the
// same answer.
func TestLostReplyOfAcquireIsAskedForAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault asynclocktest.Fault
		late  time.Duration
	}{
		{"the connection broke", asynclocktest.LoseReply, 100 * time.Millisecond},
		{"nothing was heard", asynclocktest.Silence, callTimeout + 100*time.Millisecond},
		{"the request was lost", asynclocktest.Hang, callTimeout + 100*time.Millisecond},
		{"the server refused", asynclocktest.Refuse, 100 * time.Millisecond},
	} {
		scene(t, c.name, func(w *world) {
			client := w.client()
			w.store.Next(asynclocktest.Acquire.On("key"), c.fault)
			before := time.Now()
			l := lock(w, client, "key")
			if took := time.Since(before); took > c.late {
				w.Errorf("Lock took %v, want at most %v", took, c.late)
			}
			asked := w.store.Calls(asynclocktest.Acquire.On("key"))
			if len(asked) != 2 || asked[0].Owner != asked[1].Owner {
				w.Errorf("got %d requests %+v, want two for one owner", len(asked), asked)
			}
			wantTime(w, "trust deadline", l.Deadline(), asked[1].At.Add(trusted(ttl)))
			unlock(w, l)
			w.wantUnused()
		})
	}
}

// A waiter whose queueing was confirmed by nobody keeps the place that it got.
func TestLostReplyOfQueueingKeepsThePlace(t *testing.T) {
	story(t, func(w *world) {
		holder, first, second := w.client(), w.client(), w.client()
		held := lock(w, holder, "key")
		w.store.Next(asynclocktest.Acquire.From(1), asynclocktest.Silence)
		p := w.ask(w.Context(), first, "key")
		q := w.ask(w.Context(), second, "key")
		w.pass(2 * callTimeout)
		unlock(w, held)
		l := p.has()
		q.waits()
		unlock(w, l)
		unlock(w, q.has())
		w.wantUnused()
	})
}

func TestLostReplyOfRenewalIsNoLoss(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		w.store.Next(asynclocktest.Renew.On("key"), asynclocktest.LoseReply, asynclocktest.Silence)
		w.pass(2 * ttl)
		wantValid(w, l)
		unlock(w, l)
	})
}

// A release is repeated until it is answered. That the key is not ours any more
// then says that the first one has done its work.
func TestLostReplyOfReleaseIsAskedForAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault asynclocktest.Fault
	}{
		{"the connection broke", asynclocktest.LoseReply},
		{"nothing was heard", asynclocktest.Silence},
		{"the request was lost", asynclocktest.Hang},
		{"the server refused", asynclocktest.Refuse},
	} {
		scene(t, c.name, func(w *world) {
			holder, waiter := w.client(), w.client()
			l := lock(w, holder, "key")
			p := w.ask(w.Context(), waiter, "key")
			w.store.Next(asynclocktest.Release.From(0), c.fault)
			unlock(w, l)
			unlock(w, p.has())
			w.wantCalls(asynclocktest.Release.From(0), 2)
			w.wantUnused()
		})
	}
}

// When the release that also queues this client again has no answer, its local
// waiter is neither lost nor queued twice, and comes after those who were there.
func TestLostReplyOfRequeueLosesNobody(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault asynclocktest.Fault
	}{
		{"the connection broke", asynclocktest.LoseReply},
		{"nothing was heard", asynclocktest.Silence},
		{"the request was lost", asynclocktest.Hang},
		{"it came late", asynclocktest.Slow(callTimeout+200*time.Millisecond, 0)},
		{"the server refused", asynclocktest.Refuse},
	} {
		scene(t, c.name, func(w *world) {
			here, there := w.client(), w.client()
			l := lock(w, here, "key")
			remote := w.ask(w.Context(), there, "key")
			local := w.ask(w.Context(), here, "key", asynclock.WithDescription("on other terms"))
			w.store.Next(asynclocktest.Release.From(0), c.fault)
			unlock(w, l)
			theirs := remote.get()
			local.waits()
			if got := w.inspect("key").Waiters; got > 1 {
				w.Errorf("the store has %d waiters, want one", got)
			}
			unlock(w, theirs)
			unlock(w, local.get())
			w.pass(time.Minute)
			w.wantUnused()
		})
	}
}

// Once the waiter that rode on a release goes its own way, repeating the release
// does not put it back into a queue that it has left.
func TestRepeatedReleaseDoesNotQueueAgain(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		first := w.store.Calls(asynclocktest.Any)[0].Owner
		ctx, cancel := context.WithCancel(w.Context())
		p := w.ask(ctx, c, "key", asynclock.WithDescription("on other terms"))
		itsRelease := asynclocktest.Release.On("key").Where(func(c asynclocktest.Call) bool { return c.Owner == first })
		w.store.Next(itsRelease, asynclocktest.Refuse, asynclocktest.Refuse, asynclocktest.Refuse, asynclocktest.Refuse)
		answer := l.UnlockChan(w.Context())
		w.pass(300 * time.Millisecond)
		cancel()
		wantError(w, p.ended(), context.Canceled)
		wantError(w, <-answer, nil)
		w.wantCalls(itsRelease, 5)
		w.wantUnused()
	})
}

// W7: a granting reply for an acquisition that is over is given back at once,
// also when the withdrawal that should have prevented it is lost.
func TestLateGrantingReplyOfAFinishedAcquisitionIsGivenBack(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		ctx, cancel := context.WithCancel(w.Context())
		w.store.Next(asynclocktest.Acquire.On("key"), asynclocktest.Slow(100*time.Millisecond, 400*time.Millisecond))
		future := c.LockChan(ctx, "key")
		w.pass(50 * time.Millisecond)
		w.store.Next(asynclocktest.Release.On("key"), asynclocktest.Slow(10*time.Second, 0)) // the withdrawal
		cancel()
		wantError(w, errOf((<-future).Lease()), context.Canceled)
		w.pass(400 * time.Millisecond)
		if !w.inspect("key").Held {
			w.Fatal("the key is free before the reply, want the late request to have it")
		}
		w.pass(100 * time.Millisecond)
		w.wantUnused()
	})
}

// Cancelling and granting cross. The first of them wins, and somebody always gets the key.
func TestCancelRacingAGrant(t *testing.T) {
	type crossing struct {
		*world
		cancel  context.CancelFunc
		message func() // delivers the grant message
		mine    <-chan asynclock.Result
		next    *pending // of another client
	}
	cross := func(t *testing.T, times int, then func(x crossing)) {
		stories(t, times, func(w *world) {
			holder, waiter, other := w.client(), w.client(), w.client()
			held := lock(w, holder, "key")
			ctx, cancel := context.WithCancel(w.Context())
			mine := waiter.LockChan(ctx, "key")
			w.wait()
			next := w.ask(w.Context(), other, "key")
			var box asynclocktest.Mailbox
			w.store.NextEvent(asynclocktest.Kind(store.EventGrant).For(1), box.Keep)
			unlock(w, held)
			then(crossing{w, cancel, func() { box.Deliver(0) }, mine, next})
			unlock(w, next.has())
			w.wantUnused()
		})
	}
	t.Run("the cancel is first", func(t *testing.T) {
		cross(t, 1, func(x crossing) {
			x.cancel()
			x.wait()
			x.message()
			wantError(x, errOf((<-x.mine).Lease()), context.Canceled)
			x.next.has()
		})
	})
	t.Run("the grant is first and nobody has received", func(t *testing.T) {
		cross(t, 1, func(x crossing) {
			x.message()
			x.cancel()
			x.wait()
			wantError(x, errOf((<-x.mine).Lease()), context.Canceled)
			x.next.has()
		})
	})
	t.Run("the claim is first", func(t *testing.T) {
		cross(t, 1, func(x crossing) {
			x.message()
			l, err := (<-x.mine).Lease()
			if err != nil {
				x.Fatal(err)
			}
			x.cancel()
			x.next.waits()
			wantValid(x, l)
			unlock(x, l)
		})
	})
	t.Run("in the same moment, many times", func(t *testing.T) {
		cross(t, 100, func(x crossing) {
			go x.cancel()
			go x.message()
			l, err := (<-x.mine).Lease()
			switch {
			case err == nil:
				wantValid(x, l)
				x.next.waits()
				unlock(x, l)
			case !errors.Is(err, context.Canceled):
				x.Errorf("got error %v, want %v", err, context.Canceled)
			}
		})
	})
}

// For Lock the return is the claim: a grant that came before the end of its
// context is the caller's, whichever of the two it looked at first.
func TestLockReturnsALeaseOrGivesItBack(t *testing.T) {
	stories(t, 100, func(w *world) {
		holder, waiter := w.client(), w.client()
		held := lock(w, holder, "key")
		ctx, cancel := context.WithCancel(w.Context())
		p := w.ask(ctx, waiter, "key")
		go cancel()
		unlock(w, held)
		if err := p.ended(); err == nil {
			wantValid(w, p.lease)
			unlock(w, p.lease)
		} else if wantError(w, err, context.Canceled); p.lease != nil {
			w.Errorf("got a lease together with %v", err)
		}
		w.pass(time.Second)
		w.wantUnused()
	})
}
