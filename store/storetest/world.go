// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

const (
	// long is the TTL of holdings that must not expire while a case runs. The remaining time tells
	// medium and long apart. ZooKeeper's sessions last for at most two minutes.
	long   = 100 * time.Second
	medium = 30 * time.Second
	// short is the TTL of holdings that have to expire.
	short = 500 * time.Millisecond
	// patience is how long a case waits for something that has to happen. With many cases at a
	// time, a busy machine has taken half of it for one batch on a server that was interpreted.
	patience = time.Minute
	// pause is the time between two checks.
	pause = 10 * time.Millisecond
	// slack is how much earlier than its TTL a holding may end by our clock: one
	// millisecond of rounding, and clocks of slightly different rates.
	slack = 5*time.Millisecond + short/100
)

// A world is the surroundings of one case: a store and a key that nobody else uses.
type world struct {
	*testing.T
	store store.Store
	key   string
}

func newWorld(t *testing.T, store store.Store) *world {
	t.Helper()
	return &world{T: t, store: store, key: "storetest/" + random(9)}
}

// random returns n random bytes as text.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

func newOwner() string {
	b := make([]byte, 1)
	rand.Read(b)
	return random(16) + "." + hex.EncodeToString(b)
}

// request requests the case's key as most cases do: nothing expires, and the request waits its
// turn.
func (w *world) request() store.AcquireRequest {
	return store.AcquireRequest{
		Key: w.key, Owner: newOwner(),
		TTL: long, GrantTTL: long, WaiterTTL: long,
		Wait: true, Description: "storetest " + random(3),
	}
}

// try is request without waiting.
func (w *world) try() store.AcquireRequest {
	r := w.request()
	r.Wait = false
	return r
}

// A client is one session and the events that were sent to it.
type client struct {
	w       *world
	session store.Session

	mu     sync.Mutex
	events []store.Event
	news   chan struct{}
}

// join connects a client, which leaves when the case ends.
func (w *world) join() *client {
	w.Helper()
	c := &client{w: w, news: make(chan struct{}, 1)}
	session, err := w.store.Open(random(12), c.receive)
	if err != nil {
		w.Fatalf("Open: got %v, want a session", err)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = session.Close(ctx) // a case may have left already
	})
	c.session = session
	return c
}

func (c *client) receive(e store.Event) {
	c.mu.Lock()
	c.events = append(c.events, e)
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default: // one is pending, and its reader checks all events
	}
}

// find returns the first event of that kind for owner, if it has come.
func (c *client) find(kind store.EventKind, owner string) (store.Event, bool) {
	return c.findThat(func(e store.Event) bool { return e.Kind == kind && e.Owner == owner })
}

// findThat returns the first event that matches, if it has come.
func (c *client) findThat(matches func(store.Event) bool) (store.Event, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		if matches(e) {
			return e, true
		}
	}
	return store.Event{}, false
}

// forgetThat forgets events that match.
func (c *client) forgetThat(matches func(store.Event) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = slices.DeleteFunc(c.events, matches)
}

// await waits for an event of that kind for owner.
func (c *client) await(kind store.EventKind, owner string) store.Event {
	c.w.Helper()
	return c.awaitThat(fmt.Sprintf("an event of kind %d for the owner", kind), func(e store.Event) bool { return e.Kind == kind && e.Owner == owner })
}

// awaitForced waits for the notification that the key was taken from owner.
func (c *client) awaitForced(owner string) {
	c.w.Helper()
	c.awaitThat("an event that the key was taken by force", forcedOut(owner))
}

// forcedOut matches what a store sends to the holder whose key is taken: a message, or what it has seen itself.
func forcedOut(owner string) func(store.Event) bool {
	return func(e store.Event) bool {
		return e.Owner == owner && (e.Kind == store.EventForced || e.Kind == store.EventLost && errors.Is(e.Err, store.ErrForced))
	}
}

// awaitThat waits for an event that matches.
func (c *client) awaitThat(what string, matches func(store.Event) bool) store.Event {
	c.w.Helper()
	timeout := time.After(patience)
	for {
		if e, ok := c.findThat(matches); ok {
			return e
		}
		select {
		case <-c.news:
		case <-timeout:
			c.w.Fatalf("waited %v for %s: got none", patience, what)
		}
	}
}

// call bounds one call to the store.
func (c *client) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func (c *client) acquire(r store.AcquireRequest) store.AcquireReply {
	c.w.Helper()
	ctx, cancel := c.call()
	defer cancel()
	replies := c.session.Acquire(ctx, []store.AcquireRequest{r})
	c.w.wantReplies("Acquire", len(replies), 1)
	if replies[0].Err != nil {
		c.w.Fatalf("Acquire: got error %v, want none", replies[0].Err)
	}
	return replies[0]
}

func (c *client) renew(r store.RenewRequest) store.RenewReply {
	c.w.Helper()
	ctx, cancel := c.call()
	defer cancel()
	replies := c.session.Renew(ctx, []store.RenewRequest{r})
	c.w.wantReplies("Renew", len(replies), 1)
	return replies[0]
}

func (c *client) release(r store.ReleaseRequest) store.ReleaseReply {
	c.w.Helper()
	ctx, cancel := c.call()
	defer cancel()
	replies := c.session.Release(ctx, []store.ReleaseRequest{r})
	c.w.wantReplies("Release", len(replies), 1)
	if replies[0].Err != nil {
		c.w.Fatalf("Release: got error %v, want none", replies[0].Err)
	}
	if held, cause := replies[0].WasHeld, replies[0].Cause; held && cause != nil || !held && !errors.Is(cause, store.ErrLost) {
		c.w.Errorf("Release: got WasHeld %v and Cause %v, want a cause if it was not held, and that as ErrLost", held, cause)
	}
	return replies[0]
}

func (c *client) inspect(key string) store.Info {
	c.w.Helper()
	ctx, cancel := c.call()
	defer cancel()
	info, err := c.session.Inspect(ctx, key)
	if err != nil {
		c.w.Fatalf("Inspect: got error %v, want none", err)
	}
	return info
}

func (c *client) force(key string) bool {
	c.w.Helper()
	ctx, cancel := c.call()
	defer cancel()
	held, err := c.session.Force(ctx, key, 0)
	if err != nil {
		c.w.Fatalf("Force: got error %v, want none", err)
	}
	return held
}

// list returns the results of List by key. One key may come several times.
func (c *client) list(prefix string) map[string]store.Info {
	c.w.Helper()
	ctx, cancel := c.call()
	defer cancel()
	found := make(map[string]store.Info)
	for info, err := range c.session.List(ctx, prefix) {
		if err != nil {
			c.w.Fatalf("List(%q): got error %v, want none", prefix, err)
		}
		found[info.Key] = info
	}
	return found
}
