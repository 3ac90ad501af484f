// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

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

// BenchmarkLockAll takes and gives back keys that nobody else wants, in turns with one key. It reports the
// median of the time, and of how many times as long it takes as one key. The load of the machine affects
// both alike.
func BenchmarkLockAll(b *testing.B) {
	for _, n := range []int{3, 8, 10, 32} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, keys := newLocks(b), make([]string, n)
			for i := range keys {
				keys[i] = fmt.Sprint("key ", i)
			}
			var all, ratios []float64
			b.ReportAllocs() // of both
			for b.Loop() {
				began := time.Now()
				lockAndUnlock(b, c, "key")
				one := time.Now()
				m, err := c.LockAll(b.Context(), keys)
				if err != nil {
					b.Fatal(err)
				}
				if err := m.Unlock(b.Context()); err != nil {
					b.Fatal(err)
				}
				took := time.Since(one)
				all = append(all, float64(took.Nanoseconds()))
				ratios = append(ratios, float64(took)/float64(one.Sub(began)))
			}
			slices.Sort(all)
			slices.Sort(ratios)
			b.ReportMetric(all[len(all)/2], "ns/all")
			b.ReportMetric(ratios[len(ratios)/2], "x-one")
		})
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
