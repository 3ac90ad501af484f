// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/store"
)

// long is a TTL for requests that don't care.
const long = time.Minute

// newStore opens a store of its own tables.
func newStore(t testing.TB, d Database, options ...Option) *Store {
	t.Helper()
	st, err := New(t.Context(), d, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// newTables makes tables of a prefix of their own and opens a store of them.
func newTables(t testing.TB, d Database, options ...Option) *Store {
	t.Helper()
	options = append([]Option{WithPrefix(newPrefix(t, d))}, options...)
	if err := Migrate(t.Context(), d, options...); err != nil {
		t.Fatal(err)
	}
	return newStore(t, d, options...)
}

// newSpringTables is newTables for Java's table.
func newSpringTables(t testing.TB, d Database, options ...SpringOption) *Store {
	t.Helper()
	options = append([]SpringOption{WithPrefix(newPrefix(t, d))}, options...)
	if err := MigrateSpring(t.Context(), d, options...); err != nil {
		t.Fatal(err)
	}
	st, err := NewSpring(t.Context(), d, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// A client is one session and what it was told.
type client struct {
	t       testing.TB
	session *session
	events  chan store.Event
}

// join connects a client and waits until it is known whether messages reach it.
func join(t testing.TB, st *Store) *client {
	t.Helper()
	c := &client{t: t, events: make(chan store.Event, 4096)}
	joined, err := st.Open("client-"+uuid.NewString(), func(e store.Event) { c.events <- e })
	if err != nil {
		t.Fatal(err)
	}
	c.session = joined.(*session)
	t.Cleanup(func() {
		if err := c.session.Close(context.Background()); err != nil {
			t.Errorf("Close: got %v, want no error", err)
		}
	})
	if c.session.inbox != nil {
		c.awaitLive()
	}
	return c
}

// awaitLive waits until messages reach the client, and forgets what it was told before.
func (c *client) awaitLive() {
	c.t.Helper()
	for end := time.Now().Add(patience); !c.session.inbox.Live(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatal("messages don't come through")
		}
	}
	c.awaitKind(store.EventResync) // Up
}

// awaitKind waits for an event of a kind and drops those before it.
func (c *client) awaitKind(kind store.EventKind) store.Event {
	c.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case e := <-c.events:
			if e.Kind == kind {
				return e
			}
		case <-timeout:
			c.t.Fatalf("got no event of kind %d", kind)
		}
	}
}

func request(key, owner string) store.AcquireRequest {
	return store.AcquireRequest{
		Key: key, Owner: owner, TTL: long, GrantTTL: long, WaiterTTL: long, Wait: true, Description: owner + " at home",
	}
}

func (c *client) acquire(q store.AcquireRequest) store.AcquireReply {
	c.t.Helper()
	r := c.session.Acquire(c.t.Context(), []store.AcquireRequest{q})[0]
	if r.Err != nil {
		c.t.Fatalf("Acquire: got %v, want no error", r.Err)
	}
	return r
}

// hold acquires what has to be free.
func (c *client) hold(q store.AcquireRequest) store.AcquireReply {
	c.t.Helper()
	r := c.acquire(q)
	if r.Status != store.Granted {
		c.t.Fatalf("Acquire of a free key: got %+v, want Granted", r)
	}
	return r
}

func (c *client) release(key, owner string) bool {
	c.t.Helper()
	r := c.session.Release(c.t.Context(), []store.ReleaseRequest{{Key: key, Owner: owner}})[0]
	if r.Err != nil {
		c.t.Fatalf("Release: got %v, want no error", r.Err)
	}
	return r.WasHeld
}

func (c *client) renew(key, owner string) error {
	return c.session.Renew(c.t.Context(), []store.RenewRequest{{Key: key, Owner: owner, TTL: long}})[0].Err
}
