// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// listen subscribes as Java does and passes on the channel and payload of each
// message.
func (sv *server) listen(t *testing.T, patterns ...string) <-chan string {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: sv.Option.InitAddress, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	messages, confirmed := make(chan string, 100), make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { confirmed <- struct{}{} })
	go func() { // ends with ctx, and the cleanup waits for it
		defer close(done)
		_ = client.Receive(ctx, client.B().Psubscribe().Pattern(patterns...).Build(), func(m rueidis.PubSubMessage) {
			if !strings.Contains(m.Channel, sidePrefix) { // no probe
				messages <- m.Channel + " " + m.Message
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		client.Close()
	})
	for range patterns {
		<-confirmed
	}
	return messages
}

// A release tells both generations of Java, in both modes, and a release of
// nothing tells nobody.
func TestAReleaseIsAnnouncedToBothGenerations(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		messages := sv.listen(t, sv.registry+"-channel", sv.registry+"-channel:*")
		lock := sv.lockKey("key")
		want := func() {
			t.Helper()
			for _, channel := range []string{sv.registry + "-channel:" + lock, sv.registry + "-channel"} {
				select {
				case got := <-messages:
					if got != channel+" "+lock {
						t.Errorf("got %q, want %q on %q", got, lock, channel)
					}
				case <-time.After(20 * time.Second):
					t.Fatalf("got nothing, want a message on %q", channel)
				}
			}
		}
		for _, mode := range lockTypes {
			c := join(t, sv.store(t, WithLockType(mode)))
			c.Hold("key", "a")
			c.release(store.ReleaseRequest{Key: "key", Owner: "stranger"})
			c.release(store.ReleaseRequest{Key: "key", Owner: "stranger", Uncertain: true})
			c.release(store.ReleaseRequest{Key: "key", Owner: "a"}) // the first to be told of
			want()
			c.release(store.ReleaseRequest{Key: "key", Owner: "a"})
			sv.Do(t, "PUBLISH", sv.registry+"-channel", "marker") // the next message, if there was no other
			if got := <-messages; got != sv.registry+"-channel marker" {
				t.Errorf("after a release of nothing: got %q, want nothing", got)
			}
			newJava(sv).hold(t, "key", long)
			if held, err := c.session.Force(t.Context(), "key", 0); !held || err != nil {
				t.Errorf("Force: got %v, %v; want true", held, err)
			}
			want()
		}
	})
}

// A message wakes those who wait for its key, whichever generation sent it.
func TestMessagesOfBothGenerationsWake(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t, WithLockType(PubSubLock))
		c, j := join(t, st), newJava(sv)
		j.hold(t, "key", long)
		j.hold(t, "other", long)
		c.Wait("key", "a")
		c.Wait("other", "b")
		for _, channel := range []string{sv.registry + "-channel", sv.registry + "-channel:" + sv.lockKey("key")} {
			sv.Do(t, "PUBLISH", channel, sv.lockKey("key"))
			c.Heard(store.EventWake, "a")
		}
		for _, payload := range []string{"", "key", sv.lockKey("unknown"), sv.registry, "pubsub-probe:X", forcedPrefix, forcedPrefix + "a b"} {
			sv.Do(t, "PUBLISH", sv.registry+"-channel", payload)
		}
		c.heardNothing(sv)

		// An owner that has the key, or has given up, no longer waits.
		j.release(t, "key")
		c.Want(redistest.Request("key", "a"), store.Granted)
		c.release(store.ReleaseRequest{Key: "other", Owner: "b"})
		c.Want(redistest.Attempt("other", "c"), store.Held)
		for _, key := range []string{"key", "other"} {
			sv.Do(t, "PUBLISH", sv.registry+"-channel", sv.lockKey(key))
		}
		c.heardNothing(sv)
		if got := len(c.session.waiting.owners); got != 0 {
			t.Errorf("keys with waiters remembered: got %d, want none", got)
		}
	})
}

// An owner can be woken from before its request is sent: a release between the
// server's answer and its arrival must not be missed.
func TestOwnersCanBeWokenWhileTheyAsk(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	c := join(t, sv.store(t, WithLockType(PubSubLock)))
	q := redistest.Request("key", "a")
	if _, err := c.session.putAcquire(&q); err != nil {
		t.Fatal(err)
	}
	sv.Do(t, "PUBLISH", sv.registry+"-channel", sv.lockKey("key"))
	c.Heard(store.EventWake, "a")
}

// Characters that mean something in a pattern are taken literally.
func TestRegistryKeysAreNoPatterns(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		sv.registry += `[ab]*?\^`
		c, j := join(t, sv.store(t, WithLockType(PubSubLock))), newJava(sv)
		j.hold(t, "key", long)
		if got := c.Wait("key", "a").Recheck; got < DefaultPollInterval*2 {
			t.Errorf("Recheck: got %v, want messages counted on", got)
		}
		sv.Do(t, "PUBLISH", strings.Replace(sv.registry, "[ab]", "a", 1)+"-channel", sv.lockKey("key")) // somebody else's
		sv.Do(t, "PUBLISH", sv.registry+"-channel:"+sv.lockKey("key"), sv.lockKey("key"))
		c.Heard(store.EventWake, "a")
		c.heardNothing(sv)
	})
}

// An owner whose request comes too late is not remembered as a waiter.
func TestWhoHasLeftDoesNotWait(t *testing.T) {
	t.Parallel()
	c := join(t, onMiniredis(t).store(t, WithLockType(PubSubLock)))
	if err := c.session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.Acquire(redistest.Request("key", "a")).Err; !errors.Is(got, store.ErrClosed) {
		t.Errorf("Acquire: got %v, want ErrClosed", got)
	}
	if got := len(c.session.waiting.owners); got != 0 {
		t.Errorf("waiting: got %d keys, want none", got)
	}
}

// As docs/stores/spring.md warns.
func TestRegistryKeysThatBeginAlikeShareKeys(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		outer := join(t, sv.store(t))
		sv.registry += ":eu"
		inner := join(t, sv.store(t))
		outer.Hold("eu:42", "a")
		if got := inner.Acquire(redistest.Attempt("42", "b")).Status; got != store.Held {
			t.Errorf("Acquire: got status %v, want Held", got)
		}
		if got := inner.list(""); !slices.Equal(got, []string{"42"}) {
			t.Errorf("List: got %q, want the key", got)
		}
	})
}

func TestHowSoonWaitersAskAgain(t *testing.T) {
	const interval = 30 * time.Millisecond
	onEachServer(t, func(t *testing.T, sv *server) {
		newJava(sv).hold(t, "key", long)
		for mode, want := range map[LockType]time.Duration{SpinLock: interval, PubSubLock: 10 * interval} {
			c := join(t, sv.store(t, WithLockType(mode), WithPollInterval(interval)))
			for range 20 {
				if got := c.Wait("key", "a").Recheck; got < want*2/3 || got > want*4/3 {
					t.Errorf("%v: got Recheck %v, want %v give or take a third", mode, got, want)
				}
			}
		}
	})
}

// Where the server does not let us subscribe, waiters ask as often as in mode
// SPIN_LOCK, and the log says so.
func TestWithoutTheRightToSubscribe(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	sv.Do(t, "ACL", "SETUSER", "mute", "on", ">pw", "~*", "&*", "+@all", "-psubscribe", "-publish")
	sv.Option.Username, sv.Option.Password = "mute", "pw"
	var log kit.Journal
	c := join(t, sv.store(t, WithLockType(PubSubLock), WithLogger(log.Logger(slog.LevelInfo))))
	newJava(sv).hold(t, "key", long)
	if got := c.Wait("key", "a").Recheck; got > 2*DefaultPollInterval {
		t.Errorf("Recheck: got %v, want about %v", got, DefaultPollInterval)
	}
	kit.Eventually(t, "the log says that messages don't come through", func() bool {
		return strings.Contains(log.String(), "messages don't come through")
	})
	// A release is one, even if nobody may be told.
	c.Hold("free", "b")
	if !c.release(store.ReleaseRequest{Key: "free", Owner: "b"}).WasHeld {
		t.Error("Release: got WasHeld false, want true")
	}
}

// A client that gives the key back and has more waiters of its own lets others
// come first: the answer is to wait a little, and its own message wakes it not.
func TestAClientWaitsItsTurn(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t, WithLockType(PubSubLock)))
		c.Hold("key", "a")
		back := redistest.Request("key", "b")
		got := c.release(store.ReleaseRequest{Key: "key", Owner: "a", Requeue: &back})
		if !got.WasHeld || got.Requeue == nil || got.Requeue.Status != store.Waiting {
			t.Fatalf("Release with Requeue: got %+v, want WasHeld, and to wait", got)
		}
		if in := got.Requeue.Recheck; in <= 0 || in > DefaultPollInterval/5 {
			t.Errorf("Recheck: got %v, want about %v", in, DefaultPollInterval/10)
		}
		c.heardNothing(sv)
		newJava(sv).hold(t, "key", long) // it is free
	})
}

// Clients are made to give a key away after a few times, since nobody knows who
// else waits.
func TestSomebodyMayAlwaysWait(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		if got := c.Hold("key", "a").Waiters; got == 0 {
			t.Error("Waiters of a grant: got 0, want at least one assumed")
		}
		if got := c.session.Renew(t.Context(), []store.RenewRequest{{Key: "key", Owner: "a", TTL: long}})[0].Waiters; got == 0 {
			t.Error("Waiters of a renewal: got 0, want at least one assumed")
		}
	})
}

func TestAHolderIsToldOfForce(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		a, b := join(t, sv.store(t, WithLockType(PubSubLock))), join(t, sv.store(t))
		a.Hold("key", "a")
		if held, err := b.session.Force(t.Context(), "key", 0); !held || err != nil {
			t.Fatalf("Force: got %v, %v; want true", held, err)
		}
		a.Heard(store.EventForced, "a")
	})
}

// After Close nobody is subscribed.
func TestLeaveUnsubscribes(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t, WithLockType(PubSubLock)))
	if got := sv.Number(t, "PUBSUB", "NUMPAT"); got != 2 {
		t.Errorf("patterns: got %d, want 2", got)
	}
	if err := c.session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "nobody is subscribed", func() bool { return sv.Number(t, "PUBSUB", "NUMPAT") == 0 })
}
