// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

func TestAReleaseHandsOn(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		first := a.Hold("key", "a")
		mark := b.Wait("key", "b").Mark
		b.Wait("key", "c")
		sv.Pass(time.Millisecond)
		if got := a.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: first.Token}); !got.WasHeld {
			t.Error("Release: got WasHeld false, want true")
		}
		e := b.Heard(store.EventGrant, "b")
		if e.Grant.Token <= mark || e.GrantTTL != grant || e.Waiters != 1 || !e.Grant.TokensFollowClock {
			t.Errorf("EventGrant: got %+v, want a token above %d from the clock, TTL %v, 1 waiter", e, mark, grant)
		}
		again := b.Want(redistest.Request("key", "b"), store.Granted)
		if again.Grant != e.Grant || again.Waiters != 1 {
			t.Errorf("Acquire by the new holder: got %+v, want the grant of the message and 1 waiter", again)
		}
		if info := b.Inspect("key"); info.Holder != "b at home" || info.Waiters != 1 || len(info.Queue) != 1 || info.Queue[0].Holder != "c at home" {
			t.Errorf("Inspect: got %+v, want b holding and c waiting", info)
		}
	})
}

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

func TestWaitersWithoutAnAddressFindTheirGrant(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st).silence()
		a.Hold("key", "a")
		got := b.Wait("key", "b")
		if got.Recheck < 20*time.Millisecond || got.Recheck > 60*time.Millisecond {
			t.Errorf("Recheck of the first in the queue: got %v, want 25 to 50ms", got.Recheck)
		}
		a.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		if left := sv.pttl(t, "key", 'l'); left > grant || left <= 0 {
			t.Errorf("TTL of the grant: got %v, want at most %v", left, grant)
		}
		b.Want(redistest.Request("key", "b"), store.Granted)
		if left := sv.pttl(t, "key", 'l'); left <= grant {
			t.Errorf("TTL once found: got %v, want %v", left, long)
		}
	})
}

func TestReleaseWritesTheLastTokenBack(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		far := c.Hold("key", "a").Token + 1e12
		c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: far})
		if got := c.Hold("key", "b").Token; got != far+1 {
			t.Errorf("token after %d was used: got %d, want %d", far, got, far+1)
		}
		c.Wait("key", "c")
		c.release(store.ReleaseRequest{Key: "key", Owner: "b", Token: far + 10})
		// The waiter's ticket was far+2.
		if got := c.Heard(store.EventGrant, "c").Grant.Token; got != far+11 {
			t.Errorf("token after %d was used: got %d, want %d", far+10, got, far+11)
		}
	})
}

func TestAKeyIsKeptBack(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		token := c.Hold("key", "a").Token
		c.Wait("key", "b")
		const keep = 5 * time.Second
		if got := c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: token + 5, HoldBack: keep}); !got.WasHeld {
			t.Error("Release: got WasHeld false, want true")
		}
		c.Heard(store.EventWake, "b")
		if err := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long}).Err; err != store.ErrExpired { //nolint:errorlint // exactly this
			t.Errorf("Renew of what is kept back: got %v, want ErrExpired", err)
		}
		q := redistest.Request("key", "c")
		q.Wait = false
		got := c.Want(q, store.Held)
		if got.HolderToken != token+5 || got.Holder != "a at home" || got.Remaining <= 0 || got.Remaining > keep || got.Waiters != 1 {
			t.Errorf("Held: got %+v, want it kept back for a, with token %d and one waiter", got, token+5)
		}
		c.Wait("key", "b")
		sv.expire(t, "key")
		if got := c.Want(redistest.Request("key", "b"), store.Granted); got.Token <= token+5 {
			t.Errorf("token: got %d, want more than %d", got.Token, token+5)
		}
		c.heardNothing(sv)
	})
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

func TestRequeueJoinsTheTail(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		c.Wait("key", "b")
		c.Wait("key", "c")
		again := redistest.Request("key", "a2")
		release := store.ReleaseRequest{Key: "key", Owner: "a", Requeue: &again}
		got := c.release(release)
		if !got.WasHeld || got.Requeue == nil || got.Requeue.Status != store.Waiting || got.Requeue.Rank != 1 {
			t.Fatalf("Release with Requeue: got %+v %+v, want WasHeld and rank 1 behind c", got, got.Requeue)
		}
		c.Heard(store.EventGrant, "b")
		// The reply was lost: the same once more changes nothing.
		repeated := c.release(release)
		if repeated.WasHeld || !errors.Is(repeated.Cause, store.ErrStolen) || repeated.Requeue == nil || repeated.Requeue.Status != store.Waiting || repeated.Requeue.Ticket != got.Requeue.Ticket {
			t.Errorf("repeated: got %+v %+v, want the same place, and that b has the key", repeated, repeated.Requeue)
		}
		c.release(store.ReleaseRequest{Key: "key", Owner: "b"})
		c.Heard(store.EventGrant, "c")
		c.release(store.ReleaseRequest{Key: "key", Owner: "c"})
		c.Heard(store.EventGrant, "a2")
	})
}

func TestRequeueAloneIsGrantedAtOnce(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		first := c.Hold("key", "a")
		again := redistest.Request("key", "a2")
		release := store.ReleaseRequest{Key: "key", Owner: "a", Token: first.Token, Requeue: &again}
		got := c.release(release)
		if !got.WasHeld || got.Requeue == nil || got.Requeue.Status != store.Granted || got.Requeue.Token <= first.Token {
			t.Fatalf("Release with Requeue: got %+v %+v, want a new grant", got, got.Requeue)
		}
		if repeated := c.release(release); repeated.WasHeld || repeated.Requeue == nil || repeated.Requeue.Grant != got.Requeue.Grant {
			t.Errorf("repeated: got %+v %+v, want the same grant", repeated, repeated.Requeue)
		}
	})
}

func TestAWithdrawnOwnerStaysGone(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		for _, found := range []string{"not at all", "holding", "waiting"} {
			key := strings.ReplaceAll(found, " ", "-")
			switch found {
			case "holding":
				c.Hold(key, "a")
			case "waiting":
				c.Hold(key, "other")
				c.Wait(key, "a")
			}
			held := c.release(store.ReleaseRequest{Key: key, Owner: "a", Uncertain: true}).WasHeld
			if held != (found == "holding") {
				t.Errorf("%s: got WasHeld %v", found, held)
			}
			c.Want(redistest.Request(key, "a"), store.Withdrawn) // the late copy
			again := redistest.Request(key, "a")
			if got := c.release(store.ReleaseRequest{Key: key, Owner: "b", Requeue: &again}); got.Requeue.Status != store.Withdrawn {
				t.Errorf("%s: requeue of the withdrawn owner: got %+v, want Gone", found, got.Requeue)
			}
		}
		c.Hold("holding", "next")
		// Without Uncertain nothing is remembered.
		c.release(store.ReleaseRequest{Key: "plain", Owner: "a"})
		c.Hold("plain", "a")
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

func TestAWithdrawnWaiterIsOutOfTheQueue(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		c.Wait("key", "b")
		c.Wait("key", "c")
		if c.release(store.ReleaseRequest{Key: "key", Owner: "b"}).WasHeld {
			t.Error("Release by a waiter: got WasHeld true, want false")
		}
		if n := sv.Number(t, "HLEN", sv.redisKey("key", 'w')); n != 1 {
			t.Errorf("entries of the queue: got %d, want that of c", n)
		}
		c.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		c.Heard(store.EventGrant, "c")
		if n := sv.Number(t, "EXISTS", sv.redisKey("key", 'q'), sv.redisKey("key", 'w')); n != 0 {
			t.Errorf("queue: got %d Redis keys left, want none", n)
		}
	})
}

func TestForce(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		force := func() bool {
			t.Helper()
			held, err := b.session.Force(context.Background(), "key", 0)
			if err != nil {
				t.Fatal(err)
			}
			return held
		}
		if force() {
			t.Error("Force of a free key: got true, want false")
		}
		first := a.Hold("key", "a")
		b.Wait("key", "b")
		if !force() {
			t.Error("Force of a held key: got false, want true")
		}
		a.Heard(store.EventForced, "a")
		// Until it hears of it, the old holder may spend a token per microsecond,
		// up to its TTL.
		if got, want := b.Heard(store.EventGrant, "b").Grant, first.Token+int64((long-2*time.Second)/time.Microsecond); got.Token < want || got.TokensFollowClock {
			t.Errorf("grant after Force: got %+v, want a token of at least %d, not from the clock", got, want)
		}
		if !force() {
			t.Error("Force of a held key: got false, want true")
		}
		b.Heard(store.EventForced, "b")
		a.Hold("key", "c")
		a.release(store.ReleaseRequest{Key: "key", Owner: "c", HoldBack: time.Minute})
		if !force() {
			t.Error("Force of a key that is kept back: got false, want true")
		}
		a.Hold("key", "d")
		a.heardNothing(sv)
	})
}

func TestTwoClientsPlayPingPong(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.Hold("key", "a0")
		last, holder := int64(0), "a0"
		for i := range 200 {
			next := "w" + string(rune('a'+i%26)) + "." + holder[:1]
			b.Wait("key", next)
			a.release(store.ReleaseRequest{Key: "key", Owner: holder, Token: last})
			e := b.Heard(store.EventGrant, next)
			if e.Grant.Token <= last {
				t.Fatalf("token %d: got %d, want more than %d", i, e.Grant.Token, last)
			}
			last, holder = e.Grant.Token, next
			a, b = b, a
		}
	})
}
