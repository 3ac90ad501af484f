// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// inBubble opens a client of the registry "shop" inside a synctest bubble.
func inBubble(t *testing.T, mode LockType) (*miniredis.Miniredis, *asynclock.Client) {
	t.Helper()
	mini, option := redistest.InBubble(t)
	st, err := Open(option, "shop", WithLockType(mode), WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	locks, err := asynclock.New(st, asynclock.WithTTL(DefaultTTL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		locks.Close(context.Background())
		st.Close()
		time.Sleep(time.Minute) // rueidis' last timers
	})
	time.Sleep(time.Second) // messages come through by now
	return mini, locks
}

// A holder in Java that crashes sends no message, and one that spins neither. In
// either mode a waiter is late by no more than the documentation says.
func TestWaitersThatNobodyTells(t *testing.T) {
	t.Parallel()
	for mode, tick := range map[LockType]time.Duration{SpinLock: DefaultPollInterval, PubSubLock: ticksWhenTold * DefaultPollInterval} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				mini, locks := inBubble(t, mode)
				hold := func(ttl time.Duration) {
					if err := mini.Set("shop:key", uuid.NewString()); err != nil {
						t.Fatal(err)
					}
					mini.SetTTL("shop:key", ttl)
				}
				wait := func(name string, since time.Time, atMost time.Duration) {
					t.Helper()
					lease, err := locks.Lock(t.Context(), "key")
					if err != nil {
						t.Fatal(err)
					}
					if late := time.Since(since); late < 0 || late > atMost {
						t.Errorf("%s: got the key %v late, want at most %v", name, late, atMost)
					}
					if err := lease.Unlock(t.Context()); err != nil {
						t.Errorf("Unlock: got %v, want no error", err)
					}
				}

				hold(5 * time.Second)
				wait("a TTL's end", time.Now().Add(5*time.Second), 6*time.Millisecond)

				const soon = 7 * time.Second
				hold(time.Hour)
				time.AfterFunc(soon, func() { mini.Del("shop:key") })
				wait("a release without a message", time.Now().Add(soon), tick*4/3)
			})
		})
	}
}

// A message makes all the difference.
func TestAWaiterThatIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini, locks := inBubble(t, PubSubLock)
		for _, channel := range []string{"shop-channel:shop:key", "shop-channel"} {
			if err := mini.Set("shop:key", uuid.NewString()); err != nil {
				t.Fatal(err)
			}
			const soon = 7450 * time.Millisecond
			start := time.Now()
			time.AfterFunc(soon, func() {
				mini.Del("shop:key")
				mini.Publish(channel, "shop:key")
			})
			lease, err := locks.Lock(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != soon {
				t.Errorf("with a message on %q: got the key after %v, want it after %v", channel, got, soon)
			}
			if err := lease.Unlock(t.Context()); err != nil {
				t.Errorf("Unlock: got %v, want no error", err)
			}
		}
	})
}
