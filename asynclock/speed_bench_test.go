// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// The cost of the client itself: the store answers at once. In bench/ there are servers, and peers.

// BenchmarkLockUnlock is one goroutine and one key that nobody else wants.
func BenchmarkLockUnlock(b *testing.B) {
	c := newQuick(b)
	b.ReportAllocs()
	for b.Loop() {
		unlock(b, lock(b, c, "key"))
	}
}

// BenchmarkLockUnlockCancelable is the same under a context that can end, as a
// request's does.
func BenchmarkLockUnlockCancelable(b *testing.B) {
	c := newQuick(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		l, err := c.Lock(ctx, "key")
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Unlock(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDistinctKeys is many goroutines, each with a key of its own.
func BenchmarkDistinctKeys(b *testing.B) {
	c := newQuick(b)
	var goroutines atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(128)
	b.RunParallel(func(pb *testing.PB) {
		key := fmt.Sprint("key ", goroutines.Add(1))
		for pb.Next() {
			unlock(b, lock(b, c, key))
		}
	})
}

// BenchmarkCohort is many goroutines that pass one key among themselves.
func BenchmarkCohort(b *testing.B) {
	c := newQuick(b)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			unlock(b, lock(b, c, "key"))
		}
	})
}

// BenchmarkRetaken is one goroutine that takes a retained key again and again. A
// server whose tokens rise with its clock has none for more than one in a microsecond.
func BenchmarkRetaken(b *testing.B) {
	for name, change := range map[string]func(*store.Grant){
		"tokens=set aside":           func(*store.Grant) {},
		"tokens=one per microsecond": func(g *store.Grant) { g.Reserved, g.TokensFollowClock = 0, true },
	} {
		b.Run(name, func(b *testing.B) {
			store := asynclocktest.Wrap(memstore.New())
			store.Regrant(change)
			c, err := asynclock.New(store, asynclock.WithRetention(time.Minute))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { abandon(c) })
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				l, err := c.Lock(ctx, "key")
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Unlock(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(store.Calls(asynclocktest.Acquire.Any)))/float64(b.N), "requests/op")
		})
	}
}

// BenchmarkFuture is one goroutine that asks for keys by LockChan, a window of
// them at a time, and gives them back by UnlockChan.
func BenchmarkFuture(b *testing.B) {
	c := newQuick(b)
	ctx := b.Context()
	keys := distinctKeys()[:64]
	pending := make([]<-chan asynclock.Result, len(keys))
	unlocked := make([]<-chan error, len(keys))
	b.ReportAllocs()
	for i := 0; b.Loop(); i = (i + 1) % len(keys) {
		if pending[i] != nil {
			l := claim(b, pending[i])
			unlocked[i] = l.UnlockChan(ctx)
			if err := <-unlocked[i]; err != nil {
				b.Fatal(err)
			}
		}
		pending[i] = c.LockChan(ctx, keys[i])
	}
}

// BenchmarkLockEach is 20,000 keys that workers take by one LockEach.
func BenchmarkLockEach(b *testing.B) {
	for name, workers := range map[string]int{"1 worker": 1, "8 workers": 8} {
		b.Run(name, func(b *testing.B) {
			c, err := asynclock.New(memstore.New())
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { abandon(c) })
			keys := numbered(20_000)
			b.ReportAllocs()
			for b.Loop() {
				results := c.LockEach(context.Background(), slices.Values(keys))
				var pool sync.WaitGroup
				for range workers {
					pool.Go(func() {
						for got := range results {
							l, err := got.Lease()
							if err != nil {
								b.Error(err)
								return
							}
							unlock(b, l)
						}
					})
				}
				pool.Wait()
			}
		})
	}
}

// BenchmarkTryLockHeld is a key that somebody else in this client holds.
func BenchmarkTryLockHeld(b *testing.B) {
	c := newQuick(b)
	lock(b, c, "key")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.TryLock(b.Context(), "key"); err == nil {
			b.Fatal("got a key that is held")
		}
	}
}

// newQuick returns a client of a store that grants everything at once.
func newQuick(b *testing.B) *asynclock.Client {
	b.Helper()
	c, err := asynclock.New(forgetful(store.Granted))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { abandon(c) })
	return c
}

// BenchmarkPermits is 64 goroutines that pass ten permits among themselves. Its floor in one process is
// golang.org/x/sync/semaphore.
func BenchmarkPermits(b *testing.B) {
	c, err := asynclock.New(memstore.New())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { abandon(c) })
	s := semaphore(b, c, 10)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l, err := s.Acquire(context.Background(), 1)
			if err != nil {
				b.Error(err)
				return
			}
			unlock(b, l)
		}
	})
}
