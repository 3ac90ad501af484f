// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/store"
)

// Long is a TTL for requests that don't care.
const Long = time.Minute

// Patience is how long a test waits for what has to happen.
const Patience = 30 * time.Second

// A Client is one session and what it was told.
type Client struct {
	T       testing.TB
	Session store.Session
	Events  chan store.Event
}

// Join connects a client, which leaves with the test.
func Join(t testing.TB, st store.Store) *Client {
	t.Helper()
	c := &Client{T: t, Events: make(chan store.Event, 4096)}
	session, err := st.Open("client-"+uuid.NewString(), func(e store.Event) { c.Events <- e })
	if err != nil {
		t.Fatal(err)
	}
	c.Session = session
	t.Cleanup(func() {
		if err := c.Session.Close(context.Background()); err != nil {
			t.Errorf("Close: got %v, want no error", err)
		}
	})
	return c
}

// AwaitKind waits for an event of a kind and drops those before it.
func (c *Client) AwaitKind(kind store.EventKind) store.Event {
	c.T.Helper()
	timeout := time.After(Patience)
	for {
		select {
		case e := <-c.Events:
			if e.Kind == kind {
				return e
			}
		case <-timeout:
			c.T.Fatalf("got no event of kind %d", kind)
		}
	}
}

// Request is one that waits.
func Request(key, owner string) store.AcquireRequest {
	return store.AcquireRequest{
		Key: key, Owner: owner, TTL: Long, GrantTTL: Long, WaiterTTL: Long, Wait: true, Description: owner + " at home",
	}
}

// Acquire sends a request of its own.
func (c *Client) Acquire(q store.AcquireRequest) store.AcquireReply {
	c.T.Helper()
	r := c.Session.Acquire(c.T.Context(), []store.AcquireRequest{q})[0]
	if r.Err != nil {
		c.T.Fatalf("Acquire: got %v, want no error", r.Err)
	}
	return r
}

// Hold acquires what has to be free.
func (c *Client) Hold(q store.AcquireRequest) store.AcquireReply {
	c.T.Helper()
	r := c.Acquire(q)
	if r.Status != store.Granted {
		c.T.Fatalf("Acquire of a free key: got %+v, want Granted", r)
	}
	return r
}

// Release reports whether the owner held the key.
func (c *Client) Release(key, owner string) bool {
	c.T.Helper()
	r := c.Session.Release(c.T.Context(), []store.ReleaseRequest{{Key: key, Owner: owner}})[0]
	if r.Err != nil {
		c.T.Fatalf("Release: got %v, want no error", r.Err)
	}
	return r.WasHeld
}

// Renew returns what came of it.
func (c *Client) Renew(key, owner string) error {
	return c.Session.Renew(c.T.Context(), []store.RenewRequest{{Key: key, Owner: owner, TTL: Long}})[0].Err
}
