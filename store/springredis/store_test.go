// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	for name, option := range map[string]Option{
		"no option": nil, "lock type": WithLockType(2), "negative lock type": WithLockType(-1),
		"interval 0": WithPollInterval(0), "interval too short": WithPollInterval(time.Microsecond), "interval too long": WithPollInterval(time.Hour), "nil logger": WithLogger(nil),
	} {
		if _, err := Open(sv.Option, "shop", option); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("Open with %s: got %v, want ErrInvalidOption", name, err)
		}
		if _, err := New(sv.Raw, "shop", option); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("New with %s: got %v, want ErrInvalidOption", name, err)
		}
	}
	if _, err := Open(sv.Option, ""); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("Open without a registry key: got %v, want ErrInvalidOption", err)
	}
	if _, err := New(nil, "shop"); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("New without a client: got %v, want ErrInvalidOption", err)
	}
	if _, err := Open(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}, "shop"); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("nobody listens: got %v, want ErrUnreachable", err)
	}
	st := sv.store(t)
	for _, id := range []string{"", "-", "a b", "ä", "a\n", strings.Repeat("x", redisconn.MaxFieldLen+1)} {
		if _, err := st.Open(id, func(store.Event) {}); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("Open as %q: got %v, want ErrInvalidOption", id, err)
		}
	}
	if _, err := st.Open("id", nil); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("Open without events: got %v, want ErrInvalidOption", err)
	}
	if got := LockType(7).String(); got != "LockType(7)" {
		t.Errorf("String of no lock type: got %q", got)
	}
}

func TestBadRequestsLeaveTheirNeighboursAlone(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		batch := []store.AcquireRequest{redistest.Request("good0", "a")}
		for _, spoil := range []func(*store.AcquireRequest){
			func(q *store.AcquireRequest) { q.Owner = "a b" },
			func(q *store.AcquireRequest) { q.Owner = "-" },
			func(q *store.AcquireRequest) { q.Owner = "" },
			func(q *store.AcquireRequest) { q.TTL = 0 },
		} {
			q := redistest.Request("key", "a")
			spoil(&q)
			batch = append(batch, q)
		}
		batch = append(batch, redistest.Request("good1", "a"))
		for i, got := range c.session.Acquire(t.Context(), batch) {
			if i == 0 || i == len(batch)-1 {
				if got.Status != store.Granted {
					t.Errorf("good request beside bad ones: got %+v, want Granted", got)
				}
			} else if !errors.Is(got.Err, store.ErrInvalidOption) {
				t.Errorf("%+v: got %+v, want ErrInvalidOption", batch[i], got)
			}
		}
		for _, key := range []string{"", "\xff", strings.Repeat("x", store.MaxKeyLen+1)} {
			if got := c.Acquire(redistest.Request(key, "a")); !errors.Is(got.Err, store.ErrInvalidKey) {
				t.Errorf("Acquire of %q: got %+v, want ErrInvalidKey", key, got)
			}
			if _, err := c.session.Inspect(t.Context(), key); !errors.Is(err, store.ErrInvalidKey) {
				t.Errorf("Inspect of %q: got %v, want ErrInvalidKey", key, err)
			}
			if _, err := c.session.Force(t.Context(), key, 0); !errors.Is(err, store.ErrInvalidKey) {
				t.Errorf("Force of %q: got %v, want ErrInvalidKey", key, err)
			}
		}
		noOwner := redistest.Request("key", "")
		for name, q := range map[string]store.ReleaseRequest{
			"negative token": {Key: "key", Owner: "a", Token: -1}, "huge token": {Key: "key", Owner: "a", Token: redisconn.MaxGiven},
			"negative keep": {Key: "key", Owner: "a", HoldBack: -1}, "requeue elsewhere": {Key: "key", Owner: "a", Requeue: &batch[0]},
			"requeue of nobody": {Key: "key", Owner: "a", Requeue: &noOwner}, "no owner": {Key: "key"},
		} {
			if got := c.session.Release(t.Context(), []store.ReleaseRequest{q})[0]; !errors.Is(got.Err, store.ErrInvalidOption) {
				t.Errorf("Release with %s: got %+v, want ErrInvalidOption", name, got)
			}
		}
		if err := c.renew(store.RenewRequest{Key: "key", Owner: "a"}); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("Renew without TTL: got %v, want ErrInvalidOption", err)
		}
		if got := c.list("key"); len(got) != 0 {
			t.Errorf("after bad requests: got %q held, want nothing", got)
		}
	})
}

func TestAfterCloseEverythingIsRefused(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t, WithLockType(PubSubLock))
		c := join(t, st)
		st.Close()
		st.Close()
		errs := map[string]error{
			"Acquire": c.Acquire(redistest.Request("key", "x")).Err,
			"Renew":   c.renew(store.RenewRequest{Key: "key", Owner: "x", TTL: long}),
			"Release": c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "x"}})[0].Err,
		}
		_, errs["Inspect"] = c.session.Inspect(t.Context(), "key")
		_, errs["Force"] = c.session.Force(t.Context(), "key", 0)
		for _, err := range c.session.List(t.Context(), "") {
			errs["List"] = err
		}
		_, errs["Open"] = st.Open("id", func(store.Event) {})
		for verb, err := range errs {
			if !errors.Is(err, store.ErrClosed) {
				t.Errorf("%s: got %v, want ErrClosed", verb, err)
			}
		}
		if len(errs) != 7 {
			t.Error("List: got no error, want ErrClosed")
		}
	})
}

// Not on miniredis, which allows no commands beside a subscription.
func TestTheApplicationsClientIsSharedAndLeftOpen(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
	own, err := rueidis.NewClient(sv.Option) // as rueidis sets it up
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	st, err := New(own, sv.registry, WithLockType(PubSubLock))
	if err != nil {
		t.Fatal(err)
	}
	c, j := join(t, st), newJava(sv)
	j.hold(t, "key", long)
	c.Wait("key", "a")
	sv.Do(t, "PUBLISH", sv.registry+"-channel", sv.lockKey("key"))
	c.Heard(store.EventWake, "a")
	st.Close()
	if got := c.Acquire(redistest.Request("key", "a")); !errors.Is(got.Err, store.ErrClosed) {
		t.Errorf("Acquire after Close: got %+v, want ErrClosed", got)
	}
	if err := own.Do(t.Context(), own.B().Ping().Build()).Error(); err != nil {
		t.Errorf("the application's client after Close: got %v, want it open", err)
	}
}

// In a Cluster every node passes messages on.
func TestMessagesInACluster(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_CLUSTER_URL"))
	a, b := join(t, sv.store(t)), join(t, sv.store(t, WithLockType(PubSubLock)))
	for i := range 12 { // on all nodes
		key, owner := "key"+strconv.Itoa(i), "b"+strconv.Itoa(i)
		a.Hold(key, "a")
		if got := b.Wait(key, owner).Recheck; got < 2*DefaultPollInterval {
			t.Errorf("Recheck: got %v, want messages counted on", got)
		}
		a.release(store.ReleaseRequest{Key: key, Owner: "a"})
		b.Heard(store.EventWake, owner) // of the new channel,
		b.Heard(store.EventWake, owner) // and of the old one
	}
}

func TestAServerOutOfMemoryReleasesAndRenews(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	first := c.Hold("renewed", "a")
	c.Hold("released", "a")
	c.Hold("kept", "a")
	sv.Do(t, "CONFIG", "SET", "maxmemory", "1")
	if got := c.Acquire(redistest.Request("new", "a")); !errors.Is(got.Err, store.ErrUnreachable) {
		t.Errorf("Acquire: got %+v, want ErrUnreachable", got)
	}
	if got := sv.Number(t, "EXISTS", sv.lockKey("new")); got != 0 {
		t.Error("Acquire left a lock, want none")
	}
	if err := c.renew(store.RenewRequest{Key: "renewed", Owner: "a", TTL: time.Minute, Token: first.Token + 5}); err != nil {
		t.Errorf("Renew: got %v, want no error", err)
	}
	if got := c.Inspect("renewed"); got.Token != first.Token+5 || got.Remaining <= long {
		t.Errorf("after Renew: got %+v, want its token and TTL", got)
	}
	ahead := first.Token + int64(time.Hour/time.Microsecond)
	if !c.release(store.ReleaseRequest{Key: "released", Owner: "a", Token: ahead, Uncertain: true}).WasHeld {
		t.Error("Release: got WasHeld false, want true")
	}
	if !c.release(store.ReleaseRequest{Key: "kept", Owner: "a", HoldBack: long}).WasHeld {
		t.Error("Release with Keep: got WasHeld false, want true")
	}
	sv.Do(t, "CONFIG", "SET", "maxmemory", "0")
	if got := c.Hold("released", "b").Token; got <= ahead {
		t.Errorf("token: got %d, want more than %d that was written back", got, ahead)
	}
	c.Want(redistest.Attempt("kept", "b"), store.Held)
}

func TestAServerThatForgotTheScripts(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	const n = 2*redisconn.MaxPipeline + 1
	acquires := make([]store.AcquireRequest, n)
	releases := make([]store.ReleaseRequest, n)
	for i := range n {
		acquires[i] = redistest.Request("key"+strconv.Itoa(i), "owner"+strconv.Itoa(i))
		releases[i] = store.ReleaseRequest{Key: acquires[i].Key, Owner: acquires[i].Owner}
	}
	sv.Do(t, "SCRIPT", "FLUSH")
	for i, got := range c.session.Acquire(t.Context(), acquires) {
		if got.Status != store.Granted {
			t.Fatalf("Acquire %d: got %+v, want Granted", i, got)
		}
	}
	if got := len(c.list("key")); got != n {
		t.Errorf("List: got %d keys, want %d", got, n)
	}
	sv.Do(t, "SCRIPT", "FLUSH")
	for i, got := range c.session.Release(t.Context(), releases) {
		if !got.WasHeld {
			t.Fatalf("Release %d: got %+v, want WasHeld", i, got)
		}
	}
}

// Waiting for the inbox to end is bounded by the context.
func TestLeaveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	st := sv.store(t, WithLockType(PubSubLock))
	joined, err := st.Open("id", func(store.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := joined.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Close: got %v, want nil or Canceled", err)
	}
	if err := joined.Close(t.Context()); err != nil {
		t.Errorf("Close again: got %v, want no error", err)
	}
}

func TestTTLsAreRoundedUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "0", 1: "1", time.Millisecond: "1", time.Millisecond + 1: "2", time.Second - 1: "1000"} {
		if got := millis(d); got != want {
			t.Errorf("%v: got %s ms, want %s", d, got, want)
		}
	}
}
