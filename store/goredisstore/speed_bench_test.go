// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// drivers are rueidis, as redisstore.Open has it, and a client of go-redis.
var drivers = []struct {
	name string
	open func(b *testing.B, variable, prefix string) store.Store
}{
	{"rueidis", func(b *testing.B, variable, prefix string) store.Store {
		b.Helper()
		st, err := redisstore.Open(redistest.Option(b, variable), redisstore.WithPrefix(prefix), redisstore.WithoutFailoverGrace(), redisstore.WithoutLogger())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(st.Close)
		return st
	}},
	{"go-redis", func(b *testing.B, variable, prefix string) store.Store {
		b.Helper()
		return newStore(b, clientAt(b, variable), redisstore.WithPrefix(prefix))
	}},
}

func newLocks(b *testing.B, st store.Store) *asynclock.Client {
	b.Helper()
	locks, err := asynclock.New(st, asynclock.WithoutLogger())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { locks.Close(context.Background()) })
	return locks
}

func lockAndUnlock(b *testing.B, locks *asynclock.Client, key string) {
	b.Helper()
	lease, err := locks.Lock(b.Context(), key)
	if err != nil {
		b.Fatal(err)
	}
	if err := lease.Unlock(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkUncontended takes and gives back a key that nobody else wants.
func BenchmarkUncontended(b *testing.B) {
	for _, d := range drivers {
		b.Run(d.name, func(b *testing.B) {
			kit.Require(b, variables[0])
			locks := newLocks(b, d.open(b, variables[0], "bench-"+uuid.NewString()))
			b.ReportAllocs()
			for b.Loop() {
				lockAndUnlock(b, locks, "key")
			}
		})
	}
}

// BenchmarkHandoff is a key that goes back and forth between two clients, as fast as they can.
func BenchmarkHandoff(b *testing.B) {
	for _, d := range drivers {
		b.Run(d.name, func(b *testing.B) {
			kit.Require(b, variables[0])
			prefix := "bench-" + uuid.NewString()
			one, other := newLocks(b, d.open(b, variables[0], prefix)), newLocks(b, d.open(b, variables[0], prefix))
			lease, err := one.Lock(b.Context(), "key")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				pending := other.LockChan(b.Context(), "key")
				for waiting := 0; waiting == 0; { // the next one has queued
					info, err := one.Inspect(b.Context(), "key")
					if err != nil {
						b.Fatal(err)
					}
					waiting = info.Waiters
				}
				if err := lease.Unlock(b.Context()); err != nil {
					b.Fatal(err)
				}
				if lease, err = (<-pending).Lease(); err != nil {
					b.Fatal(err)
				}
				one, other = other, one
			}
			if err := lease.Unlock(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
