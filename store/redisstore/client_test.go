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
	t        testing.TB
	session  *session
	events   chan asynclock.Event
	released map[string]bool // by key and owner
}

// join connects a client and waits until it is known whether messages reach it,
// and whether their receivers can be counted: what a test does next must not
// depend on how busy the machine is. (A message may be there before the reply to
// PUBLISH that counts its receivers.)
func join(t testing.TB, st *Store) *client {
	t.Helper()
	c := &client{t: t, events: make(chan asynclock.Event, 4096), released: make(map[string]bool)}
	joined, err := st.Join("client-"+uuid.NewString(), func(e asynclock.Event) {
		if e.Kind != asynclock.EventGap && e.Kind != asynclock.EventDeaf {
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
	if in := c.session.classic.Load(); in != nil {
		<-in.Settled()
		if in.Live() && !st.cluster() {
			eventually(t, "receivers are counted", in.channel.counted.Load)
		}
	}
	return c
}

// queueAndLeave queues a new client for key, which then leaves, and waits until
// the server has noted that nobody receives its messages any more. Leave does
// not: should the server take its time, it goes without the answer.
func (sv *server) queueAndLeave(t *testing.T, st *Store, key, owner string) (gone *client) {
	t.Helper()
	gone = join(t, st)
	gone.waitForMessage(key, owner)
	if err := gone.session.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody receives its messages", func() bool {
		for _, in := range gone.session.open() {
			if sv.receivers(t, in.channel) > 0 {
				return false
			}
		}
		return true
	})
	return gone
}

// receivers counts the subscriptions to a channel on all nodes.
func (sv *server) receivers(t *testing.T, ch *channel) (n int64) {
	t.Helper()
	question := "NUMSUB"
	if ch.sharded {
		question = "SHARDNUMSUB"
	}
	for addr, node := range sv.raw.Nodes() {
		answer, err := node.Do(t.Context(), node.B().Arbitrary("PUBSUB", question, ch.name).Build()).ToArray()
		if err != nil || len(answer) != 2 {
			t.Fatalf("PUBSUB %s on %s: got %v, %v; want a channel and a number", question, addr, answer, err)
		}
		count, err := answer[1].AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		n += count
	}
	return n
}

// silence makes scripts believe that the client can't be told anything.
func (c *client) silence() *client {
	in := &inbox{Inbox: closedInbox(), channel: newChannel(c.session.store, "nobody", false)}
	if old := c.session.classic.Swap(in); old != nil {
		old.Close()
	}
	return c
}

// doubt makes a client's inbox look as it does before it has proved itself, though
// messages come through.
func (c *client) doubt() {
	old := c.session.classic.Load()
	c.session.classic.Store(&inbox{Inbox: closedInbox(), channel: old.channel})
	c.t.Cleanup(old.Close)
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

// waitForMessage is wait, until the reply counts on messages. In a Cluster each
// bucket's inbox is opened by its first use, which a busy machine may take long
// for.
func (c *client) waitForMessage(key, owner string) {
	c.t.Helper()
	eventually(c.t, "messages come through", func() bool { return c.wait(key, owner).Recheck == 0 })
}

// release is the owner's first, as the core has them, unless it was released before.
func (c *client) release(q asynclock.ReleaseRequest) asynclock.ReleaseReply {
	c.t.Helper()
	q.First = !c.released[q.Key+" "+q.Owner]
	return c.releaseAgain(q)
}

// releaseAgain is release for one that was said before, to whatever server.
func (c *client) releaseAgain(q asynclock.ReleaseRequest) asynclock.ReleaseReply {
	c.t.Helper()
	c.released[q.Key+" "+q.Owner] = true
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
