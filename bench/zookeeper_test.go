// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
	"github.com/asynclock/asynclock-go/store/zkstore"
)

// BenchmarkZooKeeper measures zkstore beside redisstore, on the servers that the
// environment names, a standalone or an ensemble:
//
//	go run ./internal/test/testenv -- go test -C bench -run '^$' -bench ZooKeeper
//
// Each store does what a lock is for: a key that nobody else wants, keys that pass
// from client to client and from goroutine to goroutine, and keys that are held.
func BenchmarkZooKeeper(b *testing.B) {
	for _, s := range []struct {
		name string
		open func(b *testing.B) store.Store
	}{
		{"redisstore", openRedis},
		{"zkstore", openZooKeeper},
	} {
		b.Run(s.name, func(b *testing.B) {
			b.Run("lock and unlock", func(b *testing.B) { lockAndUnlock(b, s.open(b)) })
			b.Run("256 goroutines, distinct keys", func(b *testing.B) { distinctKeys(b, s.open(b)) })
			b.Run("handoff between clients", func(b *testing.B) { handOver(b, s.open(b), s.open(b)) })
			b.Run("one hot key in a client", func(b *testing.B) { hotKey(b, s.open(b)) })
		})
	}
}

func server(b *testing.B, variable string) string {
	b.Helper()
	value := os.Getenv(variable)
	if value == "" {
		b.Skip(variable + " is not set")
	}
	return value
}

func openRedis(b *testing.B) store.Store {
	b.Helper()
	option, err := rueidis.ParseURL(server(b, "ASYNCLOCK_REDIS_URL"))
	if err != nil {
		b.Fatal(err)
	}
	store, err := redisstore.Open(option, redisstore.WithPrefix("bench"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	return store
}

func openZooKeeper(b *testing.B) store.Store {
	b.Helper()
	store, err := zkstore.Open(strings.Split(server(b, "ASYNCLOCK_ZOOKEEPER"), ","), zkstore.WithRoot("/bench"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	return store
}

func join(b *testing.B, store store.Store) *asynclock.Client {
	b.Helper()
	c, err := asynclock.New(store)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return c
}

func once(b *testing.B, c *asynclock.Client, key string) {
	b.Helper()
	lease, err := c.Lock(b.Context(), key)
	if err == nil {
		err = lease.Unlock(b.Context())
	}
	if err != nil {
		b.Error(err)
	}
}

func lockAndUnlock(b *testing.B, store store.Store) {
	b.Helper()
	c, key := join(b, store), uuid.NewString()
	for b.Loop() {
		once(b, c, key)
	}
}

func distinctKeys(b *testing.B, store store.Store) {
	b.Helper()
	c := join(b, store)
	b.SetParallelism(128) // times two cores
	b.RunParallel(func(pb *testing.PB) {
		key := uuid.NewString()
		for pb.Next() {
			once(b, c, key)
		}
	})
}

func hotKey(b *testing.B, store store.Store) {
	b.Helper()
	c, key := join(b, store), uuid.NewString()
	b.SetParallelism(32) // times two cores
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			once(b, c, key)
		}
	})
}

// BenchmarkZooKeeperFloor does with the bare driver what any lock in ZooKeeper has to:
// create a node, look at all of them, and delete it.
func BenchmarkZooKeeperFloor(b *testing.B) {
	conn, events, err := zk.Connect(strings.Split(server(b, "ASYNCLOCK_ZOOKEEPER"), ","), 15*time.Second, zk.WithLogInfo(false))
	if err != nil {
		b.Fatal(err)
	}
	go func() { // ends with the connection
		for range events {
		}
	}()
	defer conn.Close()
	path := "/bench-" + uuid.NewString()
	if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		b.Fatal(err)
	}
	b.Run("lock and unlock", func(b *testing.B) {
		for b.Loop() {
			node, err := conn.Create(path+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := conn.Children(path); err != nil {
				b.Fatal(err)
			}
			if err := conn.Delete(node, -1); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := conn.Delete(path, -1); err != nil {
		b.Fatal(err)
	}
}

// handOver reports the time from Unlock in one client to the lease in another that
// is queued.
func handOver(b *testing.B, store, other store.Store) {
	b.Helper()
	giver, taker, key := join(b, store), join(b, other), uuid.NewString()
	var times []float64 // µs
	for b.Loop() {
		lease, err := giver.Lock(b.Context(), key)
		if err != nil {
			b.Fatal(err)
		}
		pending := taker.LockChan(b.Context(), key)
		for {
			info, err := giver.Inspect(b.Context(), key)
			if err != nil {
				b.Fatal(err)
			}
			if info.Waiters > 0 {
				break
			}
		}
		start := time.Now()
		go lease.Unlock(b.Context()) // ends with the release
		next, err := (<-pending).Lease()
		times = append(times, float64(time.Since(start).Nanoseconds())/1000)
		if err != nil {
			b.Fatal(err)
		}
		if err := next.Unlock(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for i, at := range quantiles(times, 0.5, 0.99) {
		b.ReportMetric(at, []string{"p50-µs", "p99-µs"}[i])
	}
}
