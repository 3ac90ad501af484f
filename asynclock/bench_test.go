// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
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

// crowd is how many leases or futures are kept at a time.
const crowd = 10_000

// BenchmarkHeldLease reports the heap that one held lease takes in its client,
// also for holders that watch their lease: its context is made when it is first
// asked for.
func BenchmarkHeldLease(b *testing.B) {
	keys := distinctKeys()
	hold := func(c *asynclock.Client) any {
		leases := make([]*asynclock.Lease, crowd)
		for i := range leases {
			leases[i] = lock(b, c, keys[i])
		}
		return leases
	}
	b.Run("alone", func(b *testing.B) { measure(b, "B/lease", store.Granted, hold) })
	b.Run("with its context", func(b *testing.B) {
		measure(b, "B/lease", store.Granted, func(c *asynclock.Client) any {
			leases := hold(c)
			for _, l := range leases.([]*asynclock.Lease) {
				l.Context()
			}
			return leases
		})
	})
}

// BenchmarkPendingFuture reports the heap that one pending LockChan takes,
// channel included, when all wait for one key and when each waits for its own;
// with one context for all of them, and with one for each, which is not counted.
func BenchmarkPendingFuture(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	shared, own := make([]context.Context, crowd), make([]context.Context, crowd)
	oneKey, keys := make([]string, crowd), distinctKeys()
	for i := range crowd {
		shared[i], oneKey[i] = ctx, "key"
	}
	for _, shape := range []struct {
		name     string
		keys     []string
		contexts []context.Context
	}{
		{"one key/one context", oneKey, shared},
		{"one key/own contexts", oneKey, own},
		{"distinct keys/one context", keys, shared},
		{"distinct keys/own contexts", keys, own},
	} {
		b.Run(shape.name, func(b *testing.B) {
			for i := range own {
				fresh, cancel := context.WithCancel(ctx)
				defer cancel()
				own[i] = fresh
			}
			measure(b, "B/pending", store.Waiting, func(c *asynclock.Client) any {
				pending := make([]<-chan asynclock.Result, crowd)
				for i := range pending {
					pending[i] = c.LockChan(shape.contexts[i], shape.keys[i])
				}
				return pending
			})
		})
	}
}

// measure reports how much heap each of a crowd takes that keep makes, with a
// store that takes none and answers everything with status.
func measure(b *testing.B, unit string, status store.AcquireStatus, keep func(*asynclock.Client) any) {
	b.Helper()
	var total uint64
	for b.Loop() {
		c, err := asynclock.New(forgetful(status), asynclock.WithTTL(asynclock.MaxTTL), asynclock.WithQueueLimit(2*crowd))
		if err != nil {
			b.Fatal(err)
		}
		before, idle := heap(), runtime.NumGoroutine()
		kept := keep(c)
		for runtime.NumGoroutine() > idle { // requests are under way
			runtime.Gosched()
		}
		total += heap() - before
		runtime.KeepAlive(kept)
		abandon(c)
	}
	b.ReportMetric(float64(total)/float64(b.N)/crowd, unit)
}

// heap is what is in use after everything unreachable has been collected.
func heap() uint64 {
	for range 3 { // pools and finalizers give up their last objects in later rounds
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func distinctKeys() []string {
	keys := make([]string, crowd)
	for i := range keys {
		keys[i] = fmt.Sprintf("key %d", i)
	}
	return keys
}

// A forgetful store remembers nothing and gives every acquire request the same
// answer.
type forgetful store.AcquireStatus

func (f forgetful) Features() store.Features { return store.Features{FIFO: true} }

func (f forgetful) Open(string, func(store.Event)) (store.Session, error) { return f, nil }

func (f forgetful) Lane(string) int { return 0 }

func (f forgetful) Acquire(_ context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	replies := make([]store.AcquireReply, len(batch))
	for i := range replies {
		replies[i] = store.AcquireReply{Status: store.AcquireStatus(f), Remaining: -1}
	}
	return replies
}

func (f forgetful) Renew(_ context.Context, batch []store.RenewRequest) []store.RenewReply {
	return make([]store.RenewReply, len(batch))
}

func (f forgetful) Release(_ context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	replies := make([]store.ReleaseReply, len(batch))
	for i := range replies {
		replies[i].WasHeld = true
	}
	return replies
}

func (f forgetful) Inspect(context.Context, string) (asynclock.Info, error) {
	return asynclock.Info{}, nil
}

func (f forgetful) List(context.Context, string) iter.Seq2[asynclock.Info, error] {
	return func(func(asynclock.Info, error) bool) {}
}

func (f forgetful) Force(context.Context, string, int64) (bool, error) { return false, nil }

func (f forgetful) Close(context.Context) error { return nil }

// One more permit, beside many that this client has one by one.
func BenchmarkPermitBesideMany(b *testing.B) {
	for _, held := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(held), func(b *testing.B) {
			c, err := asynclock.New(memstore.New(), asynclock.WithoutLogger())
			if err != nil {
				b.Fatal(err)
			}
			defer abandon(c)
			s, err := c.Semaphore("key", 2*held)
			if err != nil {
				b.Fatal(err)
			}
			for range held {
				if _, err := s.Acquire(b.Context(), 1); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				l, err := s.Acquire(b.Context(), 1)
				if err != nil {
					b.Fatal(err)
				}
				unlock(b, l)
			}
		})
	}
}
