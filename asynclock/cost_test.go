// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit/timerleak"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// The garbage of an uncontended lock is what a busy program pays for it, besides the round trips. Two
// objects of each count are the store's replies. Six are the client's: the waiter, the key's state,
// the attempt with its request, the owner id, the lease with its holding, and the release. A context
// that can end costs one more in each of the two calls.
func TestUncontendedLockAllocatesLittle(t *testing.T) {
	random := ofRandomBytes()
	timed, cancelTimed := context.WithTimeout(context.Background(), time.Hour)
	defer cancelTimed()
	for _, c := range []struct {
		name string
		ctx  context.Context
		most float64
	}{
		{"context.Background", context.Background(), 8},
		{"a context that can end", t.Context(), 10},
		{"a context with a deadline", timed, 10},
		{"a context with values", context.WithValue(context.Background(), valueKey{}, "value"), 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			locks, err := asynclock.New(forgetful(store.Granted))
			if err != nil {
				t.Fatal(err)
			}
			defer abandon(locks)
			if got := testing.AllocsPerRun(1000, func() {
				l, err := locks.Lock(c.ctx, "key")
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Unlock(c.ctx); err != nil {
					t.Fatal(err)
				}
			}); got > c.most+random {
				t.Errorf("Lock and Unlock allocate %v objects, want at most %v", got, c.most+random)
			}
		})
	}
}

// Of each key of LockAll the client makes no more objects than of the key of Lock. The waiters of all keys are
// one object, and each key has a function that takes the answer to its unlock.
func TestLockAllOfFreeKeysAllocatesLittle(t *testing.T) {
	locks, err := asynclock.New(forgetful(store.Granted))
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(locks)
	allocated := func(n int) float64 {
		keys := numbered(n)
		return testing.AllocsPerRun(1000, func() { unlockAll(t, lockAll(t, locks, keys)) })
	}
	few, many := allocated(8), allocated(40)
	if got, most := (many-few)/32, 6.5+ofRandomBytes(); got > most {
		t.Errorf("each further key allocates %v objects, want at most %v", got, most)
	}
}

// ofRandomBytes is how many objects the random bytes of an owner id cost: with the race detector one.
func ofRandomBytes() float64 {
	return testing.AllocsPerRun(1000, func() {
		var bytes [16]byte
		rand.Read(bytes[:])
	})
}

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

// A request is what a caller may keep in its context.
type request struct{ body [1 << 16]byte }

type requestKey struct{}

// takeAndForget takes a share of the key under a context with a request, lets others join, and gives its own back.
func takeAndForget(t *testing.T, take acquire, join func()) weak.Pointer[request] {
	t.Helper()
	body := new(request)
	body.body[0] = 1
	l, err := take(context.WithValue(context.Background(), requestKey{}, body), "key")
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Context().Value(requestKey{}); got != body {
		t.Errorf("the value in the lease's context: got %v, want the caller's", got)
	}
	join()
	unlock(t, l)
	return weak.Make(body)
}

// Readers share a tenure, which lasts longer than the lease of the first of them.
func TestATenureKeepsNoValuesOfItsFirstCaller(t *testing.T) {
	c, err := asynclock.New(memstore.New(), asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(c)
	var second *asynclock.Lease
	value := takeAndForget(t, c.RLock, func() { second = rlock(t, c, "key") })
	for end := time.Now().Add(20 * time.Second); value.Value() != nil; runtime.Gosched() {
		if runtime.GC(); time.Now().After(end) {
			t.Fatal("the values of the first caller's context are kept although its lease has ended")
		}
	}
	wantValid(t, second)
	if got := second.Context().Value(requestKey{}); got != nil {
		t.Errorf("the value in another lease's context: got %v, want none", got)
	}
	unlock(t, second)
}

// A client that is closed has left no timer, and nothing with a context that goes
// on. In real time: in a bubble a timer that was stopped stays until it would have
// fired. Not parallel: the profile is the process's.
func TestClosedClientHasNoTimer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context()) // it goes on until all has been looked at
	defer cancel()
	defer timerleak.Watch()()
	useAndClose(ctx, t)
	wantError(t, timerleak.Find("github.com/asynclock/asynclock-go/asynclock."), nil)
}

// useAndClose does with two clients all that may set a timer, each thing so often that
// a step that is missed now and then shows, and closes them.
func useAndClose(ctx context.Context, t *testing.T) {
	t.Helper()
	const times = 20
	store := memstore.New()
	open := func(options ...asynclock.ClientOption) *asynclock.Client {
		c, err := asynclock.New(store, options...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ours, theirs := open(asynclock.WithRetention(time.Minute)), open(asynclock.WithTTL(time.Minute))
	impatient, giveUp := context.WithCancel(ctx)
	held := lock(t, ours, "held")
	for range times {
		theirs.LockChan(ctx, "held") // until the client is closed
		theirs.LockChan(impatient, "held")
	}
	giveUp()
	var working sync.WaitGroup
	for range times {
		for _, c := range []*asynclock.Client{ours, theirs} {
			working.Go(func() {
				inTime, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				lease, err := c.Lock(inTime, "wanted")
				if err != nil {
					t.Error(err)
					return
				}
				lease.Unlock(inTime)
				if lease, err := c.TryLock(ctx, "tried"); err == nil {
					wantError(t, <-lease.UnlockChan(ctx), nil)
				} else if !errors.Is(err, asynclock.ErrHeld) {
					t.Error(err)
				}
			})
		}
	}
	working.Wait()
	bounded := lock(t, theirs, "bounded", asynclock.WithMaxHold(time.Hour), asynclock.WithMinHold(time.Millisecond))
	wantError(t, bounded.Renew(ctx, time.Minute), nil)
	bounded.Unlock(ctx)
	held.Unlock(ctx)
	for _, c := range []*asynclock.Client{ours, theirs} {
		wantError(t, c.Close(ctx), nil)
	}
}
