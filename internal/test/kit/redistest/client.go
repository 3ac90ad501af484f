// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Durations for requests that don't care, long enough never to matter.
const (
	Long  = 20 * time.Second
	Grant = 10 * time.Second
)

// A Client is one session of a store and what it was told.
type Client struct {
	T       testing.TB
	Session asynclock.Session
	Events  chan asynclock.Event
}

// Join connects a client, which leaves with the test. Events of the kinds that the test
// can't foresee are left out.
func Join(t testing.TB, st asynclock.Store, leftOut ...asynclock.EventKind) *Client {
	t.Helper()
	c := &Client{T: t, Events: make(chan asynclock.Event, 4096)}
	session, err := st.Join("client-"+uuid.NewString(), func(e asynclock.Event) {
		if !slices.Contains(leftOut, e.Kind) {
			c.Events <- e
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Session = session
	t.Cleanup(func() {
		if err := session.Leave(context.Background()); err != nil {
			t.Errorf("Leave: got %v, want no error", err)
		}
	})
	return c
}

// Request is one that waits.
func Request(key, owner string) asynclock.AcquireRequest {
	return asynclock.AcquireRequest{
		Key: key, Owner: owner, TTL: Long, GrantTTL: Grant, Liveness: Long, Wait: true, Holder: owner + " at home",
	}
}

// Attempt is Request without the waiting.
func Attempt(key, owner string) asynclock.AcquireRequest {
	q := Request(key, owner)
	q.Wait = false
	return q
}

// Acquire sends a request of its own.
func (c *Client) Acquire(q asynclock.AcquireRequest) asynclock.AcquireReply {
	c.T.Helper()
	return c.Session.Acquire(context.Background(), []asynclock.AcquireRequest{q})[0]
}

// Want is Acquire, which has to end so.
func (c *Client) Want(q asynclock.AcquireRequest, status asynclock.AcquireStatus) asynclock.AcquireReply {
	c.T.Helper()
	got := c.Acquire(q)
	if got.Err != nil || got.Status != status {
		c.T.Fatalf("Acquire of %q by %q: got status %d, error %v; want status %d", q.Key, q.Owner, got.Status, got.Err, status)
	}
	return got
}

// Hold acquires what has to be free, or the owner's.
func (c *Client) Hold(key, owner string) asynclock.AcquireReply {
	c.T.Helper()
	return c.Want(Request(key, owner), asynclock.Granted)
}

// Wait asks for what has to be another's.
func (c *Client) Wait(key, owner string) asynclock.AcquireReply {
	c.T.Helper()
	return c.Want(Request(key, owner), asynclock.Waiting)
}

// Inspect says who holds the key and who waits for it.
func (c *Client) Inspect(key string) asynclock.Info {
	c.T.Helper()
	info, err := c.Session.Inspect(context.Background(), key)
	if err != nil {
		c.T.Fatalf("Inspect of %q: got %v, want no error", key, err)
	}
	return info
}

// Heard waits for one event, which has to be the next.
func (c *Client) Heard(kind asynclock.EventKind, owner string) asynclock.Event {
	c.T.Helper()
	select {
	case e := <-c.Events:
		if e.Kind != kind || e.Owner != owner {
			c.T.Fatalf("got event %d for %q, want %d for %q", e.Kind, e.Owner, kind, owner)
		}
		return e
	case <-time.After(20 * time.Second):
		c.T.Fatalf("got no event, want %d for %q", kind, owner)
		panic("unreachable")
	}
}
