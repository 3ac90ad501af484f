// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// BenchmarkLockUnlock takes and gives back a key that nobody else wants, on a
// real server.
func BenchmarkLockUnlock(b *testing.B) {
	c := newLocks(b)
	b.ReportAllocs()
	for b.Loop() {
		lockAndUnlock(b, c, "key")
	}
}

// BenchmarkLockAll takes and gives back eight keys that nobody else wants.
func BenchmarkLockAll(b *testing.B) {
	c := newLocks(b)
	keys := make([]string, 8)
	for i := range keys {
		keys[i] = fmt.Sprint("key ", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		m, err := c.LockAll(b.Context(), keys)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Unlock(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDistinctKeys is 256 goroutines, each with a key of its own.
func BenchmarkDistinctKeys(b *testing.B) {
	c := newLocks(b)
	b.ReportAllocs()
	b.SetParallelism(128)
	var goroutines atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		key := fmt.Sprint("key ", goroutines.Add(1))
		for pb.Next() {
			lockAndUnlock(b, c, key)
		}
	})
}

// BenchmarkShares takes and gives back a share: of a key that nobody else has, or beside 100 others.
func BenchmarkShares(b *testing.B) {
	for _, bm := range []struct {
		name   string
		share  store.Share
		beside int
	}{
		{"reader", store.Share{Mode: store.Shared}, 0},
		{"reader beside 100", store.Share{Mode: store.Shared}, 100},
		{"permit", store.Share{Mode: store.Permits, Weight: 1, Limit: 200}, 0},
		{"permit beside 100", store.Share{Mode: store.Permits, Weight: 1, Limit: 200}, 100},
	} {
		b.Run(bm.name, func(b *testing.B) {
			sv := onServer(b, redistest.Option(b, "ASYNCLOCK_REDIS_URL"))
			c := join(b, sv.store(b))
			q := redistest.Request("key", "other")
			q.Share = bm.share
			for i := range bm.beside {
				q.Owner = fmt.Sprint("other", i)
				c.Want(q, store.Granted)
			}
			q.Owner = "a"
			for b.Loop() {
				token := c.Want(q, store.Granted).Token
				c.releaseAgain(store.ReleaseRequest{Key: q.Key, Owner: q.Owner, Token: token})
			}
		})
	}
}

// BenchmarkRenew extends 256 holdings, as the watchdog does.
func BenchmarkRenew(b *testing.B) {
	sv := onServer(b, redistest.Option(b, "ASYNCLOCK_REDIS_URL"))
	c := join(b, sv.store(b))
	batch := make([]store.RenewRequest, 256)
	for i := range batch {
		key, owner := fmt.Sprint("key ", i), fmt.Sprint("owner", i)
		batch[i] = store.RenewRequest{Key: key, Owner: owner, TTL: long, Token: c.Hold(key, owner).Token}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, reply := range c.session.Renew(b.Context(), batch) {
			if reply.Err != nil {
				b.Fatal(reply.Err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(batch)), "ns/key")
}

func newLocks(b *testing.B) *asynclock.Client {
	b.Helper()
	sv := onServer(b, redistest.Option(b, "ASYNCLOCK_REDIS_URL"))
	c, err := asynclock.New(sv.store(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func lockAndUnlock(b *testing.B, c *asynclock.Client, key string) {
	b.Helper()
	l, err := c.Lock(b.Context(), key)
	if err != nil {
		b.Fatal(err)
	}
	if err := l.Unlock(b.Context()); err != nil {
		b.Fatal(err)
	}
}
