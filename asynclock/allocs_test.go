// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
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
