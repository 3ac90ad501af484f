// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// long is the TTL of redistest.Request, for requests that don't care either.
const long = redistest.Long

// A client is a redistest.Client of this store.
type client struct {
	*redistest.Client

	session *session // Client.Session, as it is here
}

// join connects a client and waits until it is known whether messages reach it.
func join(t testing.TB, st *Store) *client {
	t.Helper()
	joined := redistest.Join(t, st, store.EventResync)
	c := &client{joined, joined.Session.(*session)}
	if in := c.session.inbox; in != nil {
		<-in.Settled()
	}
	return c
}

func (c *client) release(q store.ReleaseRequest) store.ReleaseReply {
	c.T.Helper()
	got := c.session.Release(context.Background(), []store.ReleaseRequest{q})[0]
	if got.Err != nil {
		c.T.Fatalf("Release of %q by %q: got %v, want no error", q.Key, q.Owner, got.Err)
	}
	return got
}

func (c *client) renew(q store.RenewRequest) error {
	c.T.Helper()
	return c.session.Renew(context.Background(), []store.RenewRequest{q})[0].Err
}

// list returns the keys that List yields.
func (c *client) list(prefix string) (keys []string) {
	c.T.Helper()
	for info, err := range c.session.List(context.Background(), prefix) {
		if err != nil {
			c.T.Fatalf("List: got %v, want no error", err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// shown is what Inspect and List say of a key that is held.
func (c *client) shown(key string) []store.Info {
	c.T.Helper()
	infos := []store.Info{c.Inspect(key)}
	for info, err := range c.session.List(context.Background(), key) {
		if err != nil {
			c.T.Fatalf("List: got %v, want no error", err)
		}
		infos = append(infos, info)
	}
	if len(infos) != 2 {
		c.T.Errorf("List of %q: got %d keys, want 1", key, len(infos)-1)
	}
	return infos
}

// heardNothing publishes a message to the client and checks that it is the next
// to come: there was none before.
func (c *client) heardNothing(sv *server) {
	c.T.Helper()
	marker := "marker-" + uuid.NewString()
	sv.Do(c.T, "PUBLISH", sv.registry+"-channel", forcedPrefix+marker)
	c.Heard(store.EventForced, marker)
}

// A java is what a RedisLockRegistry does in Redis, command by command. That the
// real one does so, internal/test/interop/spring shows.
type java struct {
	sv *server
	id string
}

func newJava(sv *server) java { return java{sv, uuid.NewString()} }

func (j java) hold(t testing.TB, key string, ttl time.Duration) {
	t.Helper()
	if got := j.sv.Do(t, "SET", j.sv.lockKey(key), j.id, "NX", "PX", fmt.Sprint(ttl.Milliseconds())); got != "OK" {
		t.Fatalf("Java takes %q: got %q, want OK", key, got)
	}
}

func (j java) release(t testing.TB, key string) {
	t.Helper()
	const script = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
	if got := j.sv.Number(t, "EVAL", script, "1", j.sv.lockKey(key), j.id); got != 1 {
		t.Fatalf("Java releases %q: got %d, want 1", key, got)
	}
}
