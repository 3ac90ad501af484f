// SPDX-License-Identifier: Apache-2.0

// Package adapterkit has what the tests of all adapters in contrib need: a place for locks (World), the bad input
// that each refuses (WantRefusals), and what each promises, whatever its library is (Test).
package adapterkit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// A World is a place for locks, which all processes of a test share.
type World struct {
	*testing.T
	Store *asynclocktest.Store
}

// NewWorld makes a world without locks.
func NewWorld(t *testing.T) *World { return &World{t, asynclocktest.New()} }

// Story tells a story in a bubble.
func Story(t *testing.T, tell func(w *World)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { tell(NewWorld(t)) })
}

// Pass lets time pass, and what happens in it be done.
func Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Ticks returns a function that waits for the next tick of a clock that starts now, and then for half the time to the
// one after.
func Ticks(every time.Duration) (wait func()) {
	start := time.Now()
	return func() { Pass(every - time.Since(start)%every + every/2) }
}

// NewClient makes a client, which is closed with the test.
func NewClient(t testing.TB, store store.Store) *asynclock.Client {
	t.Helper()
	locks, err := asynclock.New(store, asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	t.Cleanup(func() { locks.Close(ended) }) // which waits for a second, if a test has failed and left a lease
	return locks
}

// Client makes the client of another process.
func (w *World) Client() *asynclock.Client {
	w.Helper()
	return NewClient(w, w.Store)
}

// Hold takes a free key, as another process does.
func (w *World) Hold(key string) *asynclock.Lease {
	w.Helper()
	lease, err := w.Client().TryLock(w.Context(), key)
	if err != nil {
		w.Fatalf("got %v, want the key free", err)
	}
	return lease
}

// WantFree checks that another process can take the key.
func (w *World) WantFree(key string) {
	w.Helper()
	w.Hold(key).Unlock(w.Context())
}

// WantHeld checks that somebody has the key.
func (w *World) WantHeld(key string) {
	w.Helper()
	if info, err := w.Client().Inspect(w.Context(), key); err != nil || !info.Held {
		w.Errorf("got %+v, %v, want the key held", info, err)
	}
}

// Expire ends the lease of the key in the store, as if its TTL were over. The holder hears of it when it asks.
func (w *World) Expire(key string) {
	w.Helper()
	if held, err := w.Store.Expire(w.Context(), key); err != nil || !held {
		w.Errorf("Expire: got %t, %v, want a key that was held", held, err)
	}
}

// Never is work that must not begin.
func Never(t testing.TB) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the work has begun")
		return nil
	}
}
