// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// startWith starts a server, and makes a client of it that New accepts, as changed.
func startWith(t *testing.T, change func(*redis.Options)) (*servers.Redis, *redis.Client) {
	t.Helper()
	sv := redistest.Start(t, servers.Config{})
	o := &redis.Options{Addr: sv.Addr}
	change(o)
	client := redis.NewClient(o)
	t.Cleanup(func() { client.Close() })
	return sv, client
}

// A server that refuses new connections refuses each command of a batch. go-redis tells only the pipeline.
func TestARefusedConnectionIsTheErrorOfEachCommand(t *testing.T) {
	t.Parallel()
	sv, client := startWith(t, func(o *redis.Options) { o.Password = "wrong" })
	if err := sv.Do(t.Context(), "CONFIG", "SET", "requirepass", "right"); err != nil {
		t.Fatal(err)
	}
	c := redistest.Join(t, newStore(t, client))
	for i, got := range c.Session.Acquire(t.Context(), []store.AcquireRequest{redistest.Attempt("a", "o"), redistest.Attempt("b", "o")}) {
		if !errors.Is(got.Err, store.ErrDenied) {
			t.Errorf("request %d of a batch: got %v, want ErrDenied", i, got.Err)
		}
	}
	if got := c.Acquire(redistest.Attempt("a", "o")).Err; !errors.Is(got, store.ErrDenied) {
		t.Errorf("a request: got %v, want ErrDenied", got)
	}
	d := newDriverOf(t, client)
	got := &command{key: "key"}
	got.words = []any{"get", word{"key", got}}
	if d.do(t.Context(), []*command{got}); !errors.Is(d.Failure(got.err), store.ErrDenied) {
		t.Errorf("GET: got %v, want ErrDenied instead of nothing", got.err)
	}
}

// awaitBlocked waits until n commands block on the server.
func awaitBlocked(t *testing.T, sv *servers.Redis, n int) {
	t.Helper()
	kit.Eventually(t, "the pool to be exhausted", func() bool {
		facts, err := sv.Facts(t.Context(), "INFO", "clients")
		return err == nil && facts["blocked_clients"] == strconv.Itoa(n)
	})
}

// Blocking commands of the application may take the whole pool. Leases are renewed, and messages and lists come all the
// same.
func TestLocksGoOnWhileThePoolIsExhausted(t *testing.T) {
	t.Parallel()
	sv, client := startWith(t, func(o *redis.Options) { o.PoolSize, o.MaxActiveConns = 2, 2 })
	c := redistest.Join(t, newStore(t, client))
	token := c.Hold("key", "owner").Token
	d := newDriverOf(t, client)
	hears := listenTo(t, d, "channel")
	within(t, "a subscription", hears.confirmed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		go client.BLPop(ctx, 0, "nothing") // ends when the client is closed
	}
	awaitBlocked(t, sv, 2)
	for _, got := range c.Session.Renew(t.Context(), []store.RenewRequest{{Key: "key", Owner: "owner", TTL: redistest.Long, Token: token}}) {
		if got.Err != nil {
			t.Errorf("Renew: got %v, want no error", got.Err)
		}
	}
	for key, err := range c.Session.List(t.Context(), "") {
		if err != nil {
			t.Errorf("List: got %v, %v, want no error", key, err)
		}
	}
	if n, err := d.Publish(t.Context(), redisdriver.Channel{Name: "channel"}, "text"); n != 1 || err != nil {
		t.Errorf("Publish: got %d, %v, want 1", n, err)
	}
	if got := c.Session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "owner"}})[0]; got.Err != nil || !got.WasHeld {
		t.Errorf("Release: got %+v, want the key held until now", got)
	}
}
