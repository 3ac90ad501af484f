// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// A late process comes back and finds it was passed over, or dead.
func TestAHandoffSkipsTheDeadAndTheUnreachable(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.Hold("key", "a")
		dead := redistest.Request("key", "dead")
		dead.WaiterTTL = 10 * time.Millisecond
		b.Want(dead, store.Waiting)
		gone := sv.queueAndLeave(t, "key", "lost")
		b.Wait("key", "b")
		sv.Pass(50 * time.Millisecond)

		// A replica that still has the subscription would deliver the message, so
		// who is skipped must not have been sent one. Somebody who listens to
		// everything is no receiver.
		sent := sv.overhear(t, sv.prefix+":c:*")
		a.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		e := b.Heard(store.EventGrant, "b")
		if e.Waiters != 0 {
			t.Errorf("Waiters: got %d, want 0: the dead are out of the queue", e.Waiters)
		}
		sv.Do(t, "PUBLISH", sv.prefix+":c:end", "end")
		for m := range sent {
			if m.Channel == sv.prefix+":c:"+gone.session.id {
				t.Errorf("sent to the client that is not there: %q, want nothing", m.Message)
			}
			if m.Message == "end" {
				break
			}
		}
		for _, kind := range []byte("qw") {
			if n := sv.Number(t, "EXISTS", sv.redisKey("key", kind)); n != 0 {
				t.Errorf("Redis key %c: got it there, want it gone", kind)
			}
		}
	})
}

// overhear returns what is sent to channels from now on.
func (sv *server) overhear(t *testing.T, pattern string) <-chan rueidis.PubSubMessage {
	t.Helper()
	return sv.subscribe(t, func(b rueidis.Builder) rueidis.Completed { return b.Psubscribe().Pattern(pattern).Build() })
}

func (sv *server) subscribe(t *testing.T, command func(rueidis.Builder) rueidis.Completed) <-chan rueidis.PubSubMessage {
	t.Helper()
	client, err := rueidis.NewClient(redisconn.ForLocks(sv.Option)) // miniredis wants one for subscriptions only
	if err != nil {
		t.Fatal(err)
	}
	messages := make(chan rueidis.PubSubMessage, 4096)
	confirmed := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		hooked := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { close(confirmed) })
		_ = client.Receive(hooked, command(client.B()), func(m rueidis.PubSubMessage) { messages <- m })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		client.Close()
	})
	<-confirmed
	return messages
}

// A waiter behind very many dead learns when the key is kept back, too.
func TestAKeyIsKeptBackFromWhoWaitsBehindManyDead(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		queueDead(c, redistest.Request("key", ""), 150)
		c.Wait("key", "b")
		sv.Pass(5 * time.Millisecond)
		c.release(store.ReleaseRequest{Key: "key", Owner: "a", HoldBack: 5 * time.Second})
		c.Heard(store.EventWake, "b")
		if got := sv.Number(t, "ZCARD", sv.redisKey("key", 'q')); got != 1 {
			t.Errorf("waiters: got %d, want 1", got)
		}
	})
}

func TestWithdrawnOwnersAreForgottenInTime(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	c := join(t, sv.store(t))
	c.release(store.ReleaseRequest{Key: "key", Owner: "a", Uncertain: true})
	sv.Pass(100 * time.Second)
	c.release(store.ReleaseRequest{Key: "key", Owner: "b", Uncertain: true})
	c.Want(redistest.Request("key", "a"), store.Withdrawn)
	sv.Pass(21 * time.Second)
	c.Hold("key", "a")
	c.Want(redistest.Request("key", "b"), store.Withdrawn)
	c.release(store.ReleaseRequest{Key: "key", Owner: "c", Uncertain: true})
	if got := sv.Do(t, "ZCARD", sv.redisKey("key", 'x')); got != "2" {
		t.Errorf("remembered owners: got %s, want 2, b and c", got)
	}
}
