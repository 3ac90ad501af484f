// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

type valueKey struct{}

func TestCallsThatShareALimitAreCutShortInTime(t *testing.T) {
	story(t, func(w *world) {
		var mu sync.Mutex
		lasts := make(map[string]time.Duration) // of each key, how long its first release was given
		sees := make(map[string]any)            // of each key, a value of the context of its request
		c := w.clientOf(altered{                // with the default TTL a call may take a second
			Store: w.store,
			acquire: func(ctx context.Context, batch []store.AcquireRequest) error {
				sees[batch[0].Key] = ctx.Value(valueKey{})
				return nil
			},
			release: func(ctx context.Context, batch []store.ReleaseRequest) error {
				key, start := batch[0].Key, time.Now()
				mu.Lock()
				_, again := lasts[key]
				mu.Unlock()
				if again {
					return nil
				}
				<-ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				lasts[key] = time.Since(start)
				return ctx.Err()
			},
		})
		var err error
		leases := make(map[string]*asynclock.Lease)
		for _, key := range []string{"first", "soon after", "much later"} {
			ctx := context.WithValue(context.Background(), valueKey{}, "of "+key)
			leases[key], err = c.Lock(ctx, key)
			if err != nil {
				w.Fatal(err)
			}
			if got, want := sees[key], any("of "+key); got != want {
				w.Errorf("%s: the store sees %v in the context, want %v", key, got, want)
			}
		}
		short := lock(w, c, "short", asynclock.WithTTL(400*time.Millisecond))
		var unlocking sync.WaitGroup
		unlock := func(l *asynclock.Lease) { unlocking.Go(func() { _ = l.Unlock(context.Background()) }) }
		unlock(leases["first"])
		time.Sleep(100 * time.Millisecond)
		unlock(leases["soon after"])
		unlock(short)
		time.Sleep(400 * time.Millisecond)
		unlock(leases["much later"])
		unlocking.Wait()
		for key, limit := range map[string]time.Duration{
			"first": time.Second, "soon after": time.Second, "much later": time.Second, "short": 100 * time.Millisecond,
		} {
			if got := lasts[key]; got > limit || got < limit*7/8 {
				w.Errorf("%s: a silent store got %v, want %v to %v", key, got, limit*7/8, limit)
			}
		}
	})
}
