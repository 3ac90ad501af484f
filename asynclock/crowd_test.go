// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// TestNoGoroutinePerLeaseOrFuture runs in real time, and alone: it counts the
// goroutines of the whole process.
func TestNoGoroutinePerLeaseOrFuture(t *testing.T) {
	const crowd = 10_000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	store := memstore.New()
	connect := func() *asynclock.Client {
		c, err := asynclock.New(store, asynclock.WithTTL(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { abandon(c) })
		return c
	}
	holder, waiter := connect(), connect()
	idle := runtime.NumGoroutine()
	for _, c := range []struct {
		name string
		keep func(i int)
	}{
		{"held leases", func(i int) { lock(t, holder, fmt.Sprint("key ", i)).Done() }},
		{"futures of one key", func(int) { waiter.LockChan(ctx, "key 0") }},
		{"futures of as many keys", func(i int) { waiter.LockChan(ctx, fmt.Sprint("key ", i)) }},
		{"futures with a context each", func(i int) {
			own, stop := context.WithCancel(ctx)
			context.AfterFunc(ctx, stop)
			waiter.LockChan(own, fmt.Sprint("key ", i))
		}},
		{"granted futures that nobody claims", func(i int) { waiter.LockChan(ctx, fmt.Sprint("free ", i)) }},
	} {
		for i := range crowd {
			c.keep(i)
		}
		// Requests are carried by goroutines that end with them.
		deadline := time.Now().Add(30 * time.Second)
		for runtime.NumGoroutine() > idle && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if got := runtime.NumGoroutine() - idle; got > 0 {
			t.Errorf("%d %s added %d goroutines, want none", crowd, c.name, got)
		}
	}
}
