// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/kit/timerleak"
)

// A closed store has left no timer, and nothing with a context that goes on, and nor
// has what it is made of. Not parallel: the profile is the process's.
func TestClosedStoreHasNoTimer(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *server{
		"miniredis": func(t *testing.T) *server { return onMiniredis(t) },
		"redis":     func(t *testing.T) *server { return onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL")) },
	} {
		t.Run(name, func(t *testing.T) {
			sv := open(t)
			ctx, cancel := context.WithCancel(t.Context()) // it goes on until all has been looked at
			defer cancel()
			defer timerleak.Watch()()
			useAndClose(ctx, t, sv)
			if err := timerleak.Find("github.com/asynclock/asynclock-go/"); err != nil {
				t.Error(err)
			}
		})
	}
}

// useAndClose hands a key to and fro between two clients, each with an inbox, and
// closes all.
func useAndClose(ctx context.Context, t *testing.T, sv *server) {
	t.Helper()
	var clients []*asynclock.Client
	var stores []*Store
	for range 2 {
		st, err := Open(sv.Option, WithPrefix(sv.prefix), WithoutFailoverGrace())
		if err != nil {
			t.Fatal(err)
		}
		c, err := asynclock.New(st, asynclock.WithTTL(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		clients, stores = append(clients, c), append(stores, st)
	}
	lease, err := clients[0].Lock(ctx, "key")
	for i := range 20 {
		if err != nil {
			t.Fatal(err)
		}
		next := clients[1-i%2].LockChan(ctx, "key")
		kit.Eventually(t, "somebody waits", func() bool {
			info, err := clients[0].Inspect(ctx, "key")
			return err == nil && info.Waiters == 1
		})
		lease.Unlock(ctx)
		lease, err = (<-next).Lease()
	}
	lease.Unlock(ctx)
	for i, c := range clients {
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
		stores[i].Close()
	}
}
