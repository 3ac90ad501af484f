// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/pubsub"
	"github.com/asynclock/asynclock-go/store"
)

// Those of redistest.Request, for requests that don't care either.
const (
	long  = redistest.Long
	grant = redistest.Grant
)

// A client is a redistest.Client of this store, and what it has released.
type client struct {
	*redistest.Client

	session  *session        // Client.Session, as it is here
	released map[string]bool // by key and owner
}

// join connects a client and waits until it is known whether messages reach it,
// and whether their receivers can be counted: what a test does next must not
// depend on how busy the machine is. (A message may be there before the reply to
// PUBLISH that counts its receivers.)
func join(t testing.TB, st *Store) *client {
	t.Helper()
	joined := redistest.Join(t, st, store.EventResync, store.EventDisconnected)
	c := &client{joined, joined.Session.(*session), make(map[string]bool)}
	if in := c.session.classic.Load(); in != nil {
		<-in.Settled()
		if in.Live() && !st.conn.Cluster() {
			kit.Eventually(t, "receivers are counted", in.channel.counted.Load)
		}
	}
	return c
}

// queueAndLeave queues a new client for key, which then leaves, and waits until
// the server has noted that nobody receives its messages any more. Close does
// not: should the server take its time, it goes without the answer. The client has
// a store of its own, whose connection ends.
func (sv *server) queueAndLeave(t *testing.T, key, owner string) (gone *client) {
	t.Helper()
	st := sv.newStore(t)
	gone = join(t, st)
	gone.waitForMessage(key, owner)
	if err := gone.session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	st.Close()
	kit.Eventually(t, "nobody receives its messages", func() bool {
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
	for addr, node := range sv.Raw.Nodes() {
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
		old.Close(context.Background())
	}
	return c
}

// doubt makes a client's inbox look as it does before it has proved itself, though
// messages come through.
func (c *client) doubt() {
	old := c.session.classic.Load()
	c.session.classic.Store(&inbox{Inbox: closedInbox(), channel: old.channel})
	c.T.Cleanup(func() { old.Close(context.Background()) })
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
	in.Close(context.Background())
	return in
}

// waitForMessage is Wait, until the reply counts on messages. In a Cluster each
// bucket's inbox is opened by its first use, which a busy machine may take long
// for.
func (c *client) waitForMessage(key, owner string) {
	c.T.Helper()
	kit.Eventually(c.T, "messages come through", func() bool { return c.Wait(key, owner).Recheck == 0 })
}

// release is the owner's first, as the core has them, unless it was released before.
func (c *client) release(q store.ReleaseRequest) store.ReleaseReply {
	c.T.Helper()
	q.Clean = !c.released[q.Key+" "+q.Owner]
	return c.releaseAgain(q)
}

// releaseHeld is release by the key's holder.
func (c *client) releaseHeld(q store.ReleaseRequest) {
	c.T.Helper()
	if !c.release(q).WasHeld {
		c.T.Errorf("Release of %q by %q: got WasHeld false, want true", q.Key, q.Owner)
	}
}

// releaseAgain is release for one that was said before, to whatever server.
func (c *client) releaseAgain(q store.ReleaseRequest) store.ReleaseReply {
	c.T.Helper()
	c.released[q.Key+" "+q.Owner] = true
	got := c.session.Release(context.Background(), []store.ReleaseRequest{q})[0]
	if got.Err != nil {
		c.T.Fatalf("Release of %q by %q: got %v, want no error", q.Key, q.Owner, got.Err)
	}
	return got
}

// force takes a key from whoever has it.
func (c *client) force(key string) {
	c.T.Helper()
	if held, err := c.session.Force(context.Background(), key, 0); err != nil || !held {
		c.T.Fatalf("Force: got %v, %v, want true", held, err)
	}
}

func (c *client) renew(q store.RenewRequest) store.RenewReply {
	c.T.Helper()
	return c.session.Renew(context.Background(), []store.RenewRequest{q})[0]
}

// wantRenewal renews, and fails the test unless the error is this one.
func (c *client) wantRenewal(q store.RenewRequest, want error) {
	c.T.Helper()
	if got := c.renew(q).Err; !errors.Is(got, want) {
		c.T.Errorf("Renew of %q by %q: got %v, want %v", q.Key, q.Owner, got, want)
	}
}

// heardNothing publishes a message to the client and checks that it is the next
// to come: there was none before.
func (c *client) heardNothing(sv *server) {
	c.T.Helper()
	marker := "marker-" + uuid.NewString()
	sv.Do(c.T, "PUBLISH", c.session.classic.Load().channel.name, "r "+marker)
	c.Heard(store.EventForced, marker)
}

// newClient opens a client, of which a test may leave leases.
func newClient(t *testing.T, st *Store, opts ...asynclock.ClientOption) *asynclock.Client {
	t.Helper()
	c, err := asynclock.New(st, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx) // the server may be gone
	})
	return c
}
