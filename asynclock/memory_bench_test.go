// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

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
