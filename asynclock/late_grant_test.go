// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// The stories of this file are about grant messages that are older than they
// look: rules W4 and W5.

// The order of events in which a model found two holders, step by step: a
// message of a grant that has ended arrives after a heartbeat which has since
// been answered "waiting", and which makes it look fresh.
func TestGrantOlderThanAHeartbeatsAnswerIsDropped(t *testing.T) {
	const (
		ttl      = time.Minute
		grantTTL = 9 * time.Second // three heartbeats, at their longest
	)
	story(t, func(w *world) {
		a, b := w.client(asynclock.WithTTL(ttl)), w.client(asynclock.WithTTL(ttl))
		asks := asynclocktest.Acquire.On("key")

		// B acquires, and the reply is lost. B withdraws, which takes a while.
		w.store.Next(asks.From(1), asynclocktest.LoseReply)
		ctx, cancel := context.WithCancel(w.Context())
		given := b.LockChan(ctx, "key")
		w.wait()
		w.store.Next(asynclocktest.Release.On("key").From(1), asynclocktest.Slow(100*time.Millisecond, 0))
		cancel()
		_, err := (<-given).Lease()
		wantError(w, err, context.Canceled)

		// A queues, and that reply is lost too. B's withdrawal hands A the key;
		// the message is slow.
		w.store.Next(asks.From(0), asynclocktest.Silence)
		var slow asynclocktest.Mailbox
		w.store.NextEvent(asynclocktest.Kind(store.EventGrant).For(0), slow.Keep)
		p := w.ask(w.Context(), a, "key")
		clear := w.store.Every(asks.From(0), asynclocktest.Refuse) // nor does a heartbeat get through
		w.pass(100 * time.Millisecond)
		granted := time.Now()
		if slow.Len() != 1 {
			w.Fatalf("kept %d grant messages, want 1", slow.Len())
		}

		// Just before A's grant expires B asks anew, and A sends a heartbeat.
		// Both are on their way when it does; B's arrives first.
		time.Sleep(time.Until(granted.Add(grantTTL - 200*time.Millisecond)))
		w.store.Next(asks.From(1), asynclocktest.Slow(400*time.Millisecond, 0))
		second := w.ask(w.Context(), b, "key")
		clear()
		w.store.Next(asks.From(0), asynclocktest.Slow(600*time.Millisecond, 0))
		w.store.Tell(0, store.Event{Kind: store.EventWake, Owner: w.store.Calls(asks.From(0))[0].Owner})
		w.pass(500 * time.Millisecond)
		theirs := second.has()
		w.pass(200 * time.Millisecond)
		p.waits()

		// Only now A reads the message. It makes no holder, but A goes and looks: for all
		// that it knows, the store's clock may lag, and the grant be a new one.
		before := w.calls(asks.From(0))
		slow.Deliver(0)
		p.waits()
		if got := w.calls(asks.From(0)) - before; got != 1 {
			w.Errorf("A asked %d times when it had read the message, want once", got)
		}
		wantValid(w, theirs)
		unlock(w, theirs)
		if p.has().Token() <= theirs.Token() {
			w.Errorf("got token %d after %d, want a larger one", p.lease.Token(), theirs.Token())
		}
	})
}
