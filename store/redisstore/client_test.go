// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/pubsub"
)

// Durations for requests that don't care, long enough never to matter.
const (
	long  = 20 * time.Second
	grant = 10 * time.Second
)

// A client is one session and what it was told.
type client struct {
	t       testing.TB
	session *session
	events  chan asynclock.Event
}

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
	return c
}

// silence makes scripts believe that the client can't be told anything.
func (c *client) silence() *client {
	in := &inbox{Inbox: closedInbox(), channel: &channel{}}
	if old := c.session.classic.Swap(in); old != nil {
		old.Close()
	}
	return c
}

// deaf is a source that never delivers.
type deaf struct{}

func (deaf) Receive(ctx context.Context, _ func(), _ func(string)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (deaf) Publish(context.Context, string) error { return nil }

// closedInbox is an inbox that is never live.
func closedInbox() *pubsub.Inbox {
	in := pubsub.Open(deaf{}, pubsub.Handler{})
	in.Close()
	return in
}

func request(key, owner string) asynclock.AcquireRequest {
	return asynclock.AcquireRequest{
		Key: key, Owner: owner, TTL: long, GrantTTL: grant, Liveness: long, Wait: true, Holder: owner + " at home",
	}
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

func (c *client) renew(q asynclock.RenewRequest) asynclock.RenewReply {
	c.t.Helper()
	return c.session.Renew(context.Background(), []asynclock.RenewRequest{q})[0]
}

func (c *client) inspect(key string) asynclock.Info {
	c.t.Helper()
	info, err := c.session.Inspect(context.Background(), key)
	if err != nil {
		c.t.Fatalf("Inspect of %q: got %v, want no error", key, err)
	}
	return info
}

// heard waits for one event.
func (c *client) heard(kind asynclock.EventKind, owner string) asynclock.Event {
	c.t.Helper()
	select {
	case e := <-c.events:
		if e.Kind != kind || e.Owner != owner {
			c.t.Fatalf("got event %d for %q, want %d for %q", e.Kind, e.Owner, kind, owner)
		}
		return e
	case <-time.After(20 * time.Second):
		c.t.Fatalf("got no event, want %d for %q", kind, owner)
		panic("unreachable")
	}
}

// heardNothing publishes a message to the client and checks that it is the next
// to come: there was none before.
func (c *client) heardNothing(sv *server) {
	c.t.Helper()
	marker := "marker-" + uuid.NewString()
	sv.do(c.t, "PUBLISH", c.session.classic.Load().channel.name, "r "+marker)
	c.heard(asynclock.EventForced, marker)
}
