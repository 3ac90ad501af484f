// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
)

// long is a TTL for requests that don't care.
const long = 20 * time.Second

// A client is one session and what it was told.
type client struct {
	t       testing.TB
	session *session
	events  chan asynclock.Event
}

// join connects a client and waits until it is known whether messages reach it.
func join(t testing.TB, st *Store) *client {
	t.Helper()
	c := &client{t: t, events: make(chan asynclock.Event, 4096)}
	joined, err := st.Join("client-"+uuid.NewString(), func(e asynclock.Event) {
		if e.Kind != asynclock.EventGap {
			c.events <- e
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.session = joined.(*session)
	t.Cleanup(func() {
		if err := c.session.Leave(context.Background()); err != nil {
			t.Errorf("Leave: got %v, want no error", err)
		}
	})
	if in := c.session.inbox; in != nil {
		<-in.Settled()
	}
	return c
}

func request(key, owner string) asynclock.AcquireRequest {
	return asynclock.AcquireRequest{
		Key: key, Owner: owner, TTL: long, GrantTTL: long, Liveness: long, Wait: true, Holder: owner + " at home",
	}
}

func try(key, owner string) asynclock.AcquireRequest {
	q := request(key, owner)
	q.Wait = false
	return q
}

func (c *client) acquire(q asynclock.AcquireRequest) asynclock.AcquireReply {
	c.t.Helper()
	return c.session.Acquire(context.Background(), []asynclock.AcquireRequest{q})[0]
}

func (c *client) want(q asynclock.AcquireRequest, status asynclock.AcquireStatus) asynclock.AcquireReply {
	c.t.Helper()
	got := c.acquire(q)
	if got.Err != nil || got.Status != status {
		c.t.Fatalf("Acquire of %q by %q: got status %d, error %v; want status %d", q.Key, q.Owner, got.Status, got.Err, status)
	}
	return got
}

func (c *client) hold(key, owner string) asynclock.AcquireReply {
	c.t.Helper()
	return c.want(request(key, owner), asynclock.Granted)
}

func (c *client) wait(key, owner string) asynclock.AcquireReply {
	c.t.Helper()
	return c.want(request(key, owner), asynclock.Waiting)
}

func (c *client) release(q asynclock.ReleaseRequest) asynclock.ReleaseReply {
	c.t.Helper()
	got := c.session.Release(context.Background(), []asynclock.ReleaseRequest{q})[0]
	if got.Err != nil {
		c.t.Fatalf("Release of %q by %q: got %v, want no error", q.Key, q.Owner, got.Err)
	}
	return got
}

func (c *client) renew(q asynclock.RenewRequest) error {
	c.t.Helper()
	return c.session.Renew(context.Background(), []asynclock.RenewRequest{q})[0].Err
}

func (c *client) inspect(key string) asynclock.Info {
	c.t.Helper()
	info, err := c.session.Inspect(context.Background(), key)
	if err != nil {
		c.t.Fatalf("Inspect of %q: got %v, want no error", key, err)
	}
	return info
}

// list returns the keys that List yields.
func (c *client) list(prefix string) (keys []string) {
	c.t.Helper()
	for info, err := range c.session.List(context.Background(), prefix) {
		if err != nil {
			c.t.Fatalf("List: got %v, want no error", err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// heard waits for one event.
func (c *client) heard(kind asynclock.EventKind, owner string) {
	c.t.Helper()
	select {
	case e := <-c.events:
		if e.Kind != kind || e.Owner != owner {
			c.t.Fatalf("got event %d for %q, want %d for %q", e.Kind, e.Owner, kind, owner)
		}
	case <-time.After(20 * time.Second):
		c.t.Fatalf("got no event, want %d for %q", kind, owner)
	}
}

// heardNothing publishes a message to the client and checks that it is the next
// to come: there was none before.
func (c *client) heardNothing(sv *server) {
	c.t.Helper()
	marker := "marker-" + uuid.NewString()
	sv.do(c.t, "PUBLISH", sv.registry+"-channel", forcedPrefix+marker)
	c.heard(asynclock.EventForced, marker)
}

// A java is what a RedisLockRegistry does in Redis, command by command. That the
// real one does so, interop/spring shows.
type java struct {
	sv *server
	id string
}

func newJava(sv *server) java { return java{sv, uuid.NewString()} }

func (j java) hold(t testing.TB, key string, ttl time.Duration) {
	t.Helper()
	if got := j.sv.do(t, "SET", j.sv.lockKey(key), j.id, "NX", "PX", fmt.Sprint(ttl.Milliseconds())); got != "OK" {
		t.Fatalf("Java takes %q: got %q, want OK", key, got)
	}
}

func (j java) release(t testing.TB, key string) {
	t.Helper()
	const script = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
	if got := j.sv.number(t, "EVAL", script, "1", j.sv.lockKey(key), j.id); got != 1 {
		t.Fatalf("Java releases %q: got %d, want 1", key, got)
	}
}
