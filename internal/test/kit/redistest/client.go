// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/store"
)

// Durations for requests that don't care, long enough never to matter.
const (
	Long  = 20 * time.Second
	Grant = 10 * time.Second
)

// A Client is one session of a store and what it was told.
type Client struct {
	T       testing.TB
	Session store.Session
	Events  chan store.Event
}

// Join connects a client, which leaves with the test. Events of the kinds that the test
// can't foresee are left out.
func Join(t testing.TB, st store.Store, leftOut ...store.EventKind) *Client {
	t.Helper()
	c := &Client{T: t, Events: make(chan store.Event, 4096)}
	session, err := st.Open("client-"+uuid.NewString(), func(e store.Event) {
		if !slices.Contains(leftOut, e.Kind) {
			c.Events <- e
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Session = session
	t.Cleanup(func() {
		if err := session.Close(context.Background()); err != nil {
			t.Errorf("Leave: got %v, want no error", err)
		}
	})
	return c
}

// Request is one that waits.
func Request(key, owner string) store.AcquireRequest {
	return store.AcquireRequest{
		Key: key, Owner: owner, TTL: Long, GrantTTL: Grant, WaiterTTL: Long, Wait: true, Description: owner + " at home",
	}
}

// Attempt is Request without the waiting.
func Attempt(key, owner string) store.AcquireRequest {
	q := Request(key, owner)
	q.Wait = false
	return q
}

// Acquire sends a request of its own.
func (c *Client) Acquire(q store.AcquireRequest) store.AcquireReply {
	c.T.Helper()
	return c.Session.Acquire(context.Background(), []store.AcquireRequest{q})[0]
}

// Want is Acquire, which has to end so.
func (c *Client) Want(q store.AcquireRequest, status store.AcquireStatus) store.AcquireReply {
	c.T.Helper()
	got := c.Acquire(q)
	if got.Err != nil || got.Status != status {
		c.T.Fatalf("Acquire of %q by %q: got status %d, error %v; want status %d", q.Key, q.Owner, got.Status, got.Err, status)
	}
	return got
}

// Hold acquires what has to be free, or the owner's.
func (c *Client) Hold(key, owner string) store.AcquireReply {
	c.T.Helper()
	return c.Want(Request(key, owner), store.Granted)
}

// Wait asks for what has to be another's.
func (c *Client) Wait(key, owner string) store.AcquireReply {
	c.T.Helper()
	return c.Want(Request(key, owner), store.Waiting)
}

// Inspect says who holds the key and who waits for it.
func (c *Client) Inspect(key string) store.Info {
	c.T.Helper()
	info, err := c.Session.Inspect(context.Background(), key)
	if err != nil {
		c.T.Fatalf("Inspect of %q: got %v, want no error", key, err)
	}
	return info
}

// Heard waits for one event, which has to be the next.
func (c *Client) Heard(kind store.EventKind, owner string) store.Event {
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
