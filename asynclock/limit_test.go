// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

// A silent store answers no release of a key but the second.
type silent struct {
	forgetful

	mu    sync.Mutex
	lasts map[string]time.Duration // of each key, how long its first release was given
	sees  map[string]any           // of each key, a value of the context of its first request
}

func (s *silent) Open(string, func(store.Event)) (store.Session, error) { return s, nil }

type valueKey struct{}

func (s *silent) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sees[batch[0].Key] = ctx.Value(valueKey{})
	return s.forgetful.Acquire(ctx, batch)
}

func (s *silent) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	key, start := batch[0].Key, time.Now()
	s.mu.Lock()
	_, again := s.lasts[key]
	s.mu.Unlock()
	if again {
		return s.forgetful.Release(ctx, batch)
	}
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lasts[key] = time.Since(start)
	return []store.ReleaseReply{{Err: ctx.Err()}}
}

func TestCallsThatShareALimitAreCutShortInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &silent{forgetful: forgetful(store.Granted), lasts: make(map[string]time.Duration), sees: make(map[string]any)}
		c, err := asynclock.New(s) // with the default TTL a call may take a second
		if err != nil {
			t.Fatal(err)
		}
		defer abandon(c)
		leases := make(map[string]*asynclock.Lease)
		for _, key := range []string{"first", "soon after", "much later"} {
			ctx := context.WithValue(context.Background(), valueKey{}, "of "+key)
			leases[key], err = c.Lock(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.sees[key], any("of "+key); got != want {
				t.Errorf("%s: the store sees %v in the context, want %v", key, got, want)
			}
		}
		short := lock(t, c, "short", asynclock.WithTTL(400*time.Millisecond))
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
			if got := s.lasts[key]; got > limit || got < limit*7/8 {
				t.Errorf("%s: a silent store got %v, want %v to %v", key, got, limit*7/8, limit)
			}
		}
	})
}
