// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

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

// BenchmarkLockAll takes and gives back keys that nobody else wants, in turns with one key.
func BenchmarkLockAll(b *testing.B) {
	inTurns(b, func(b *testing.B) (one, all func(keys []string)) {
		c := newLocks(b)
		return func(keys []string) { lockAndUnlock(b, c, keys[0]) }, func(keys []string) {
			m, err := c.LockAll(b.Context(), keys)
			if err != nil {
				b.Fatal(err)
			}
			if err := m.Unlock(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// inTurns takes one key and several, in turns. It reports the median of the time for several, and of how many
// times as long that is as for one. The load of the machine affects both alike.
func inTurns(b *testing.B, begin func(b *testing.B) (one, all func(keys []string))) {
	b.Helper()
	for _, n := range []int{3, 8, 10, 32} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			one, all := begin(b)
			keys := make([]string, n)
			for i := range keys {
				keys[i] = fmt.Sprint("key ", i)
			}
			var times, ratios []float64
			for b.Loop() {
				began := time.Now()
				one([]string{"key"})
				between := time.Now()
				all(keys)
				took := time.Since(between)
				times = append(times, float64(took.Nanoseconds()))
				ratios = append(ratios, float64(took)/float64(between.Sub(began)))
			}
			slices.Sort(times)
			slices.Sort(ratios)
			b.ReportMetric(times[len(times)/2], "ns/all")
			b.ReportMetric(ratios[len(ratios)/2], "x-one")
		})
	}
}

// BenchmarkDistinctKeys is so many goroutines, each with keys of its own, that take and give back a key again and again, or
// each key once. It does the same by the floor: bare SET NX PX and a compare-and-delete by the same client library.
func BenchmarkDistinctKeys(b *testing.B) {
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 1024} {
		for _, once := range []bool{false, true} {
			name := map[bool]string{false: "again/", true: "once/"}[once] + strconv.Itoa(n)
			b.Run("asynclock/"+name, func(b *testing.B) {
				c := newLocks(b)
				eachWithItsKeys(b, n, once, func(key string) { lockAndUnlock(b, c, key) })
			})
			b.Run("floor/"+name, func(b *testing.B) {
				c := onServer(b, redistest.Option(b, "ASYNCLOCK_REDIS_URL")).Raw
				del := rueidis.NewLuaScript("if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0")
				eachWithItsKeys(b, n, once, func(key string) {
					owner := uuid.NewString()
					if err := c.Do(b.Context(), c.B().Set().Key(key).Value(owner).Nx().PxMilliseconds(30_000).Build()).Error(); err != nil {
						b.Fatal(err)
					}
					if gone, err := del.Exec(b.Context(), c, []string{key}, []string{owner}).AsInt64(); gone != 1 || err != nil {
						b.Fatal(gone, err)
					}
				})
			})
		}
	}
}

// eachWithItsKeys calls do from n goroutines, each with a key of its own, or with a new one each time.
func eachWithItsKeys(b *testing.B, n int, once bool, do func(key string)) {
	b.Helper()
	b.ReportAllocs()
	var calls atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			key := fmt.Sprint("key ", i)
			for k := calls.Add(1); k <= int64(b.N); k = calls.Add(1) {
				if once {
					key = fmt.Sprint("key ", b.N, " ", k)
				}
				do(key)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1000, "k/s")
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
