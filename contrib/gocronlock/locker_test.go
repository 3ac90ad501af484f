// SPDX-License-Identifier: Apache-2.0

package gocronlock_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/gocronlock"
)

// Three hosts are started twenty seconds apart, and their job of a minute takes no time. This is
// go-co-op/gocron#841: a lock that ends with the job lets each host run it.
func TestShiftedTickersRunAFastJobOncePerInterval(t *testing.T) {
	const hosts, minutes = 3, 10
	for _, tt := range []struct {
		name    string
		options []asynclock.LockOption
		want    int64
	}{
		{"a plain lock", nil, hosts * minutes},
		{"a minimum hold", []asynclock.LockOption{asynclock.WithMinHold(54 * time.Second)}, minutes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			story(t, func(t *testing.T, store *asynclocktest.Store) {
				var runs atomic.Int64
				for range hosts {
					h := newHost(t, store, tt.options)
					h.every(time.Minute, func() { runs.Add(1) })
					h.scheduler.Start()
					pass(20 * time.Second)
				}
				pass(minutes*time.Minute - time.Second)
				if got := runs.Load(); got != tt.want {
					t.Errorf("got %d runs in %d intervals of %d hosts, want %d", got, minutes, hosts, tt.want)
				}
			})
		})
	}
}

// A job that waited for the key would run a second time, as soon as the other host has done it.
func TestAHeldKeyIsASkipWithoutWaiting(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store, nil)
		var runs atomic.Int64
		var refused errs
		h.every(time.Minute, func() { runs.Add(1) }, gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { refused.add(err) }))
		h.scheduler.Start()
		lease := hold(t, newHost(t, store, nil).locks)
		pass(61 * time.Second)
		var held *asynclock.HeldError
		if err := refused.get(); !errors.As(err, &held) || held.Key != "test:job" {
			t.Errorf("got %v, want a *HeldError of test:job", err)
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if pass(50 * time.Second); runs.Load() != 0 {
			t.Error("the job ran between two ticks, want it skipped until the next one")
		}
		if pass(10 * time.Second); runs.Load() != 1 {
			t.Errorf("got %d runs, want one when the key is free", runs.Load())
		}
	})
}

func TestASilentStoreIsASkip(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store, nil)
		var runs atomic.Int64
		var refused errs
		h.every(time.Minute, func() { runs.Add(1) }, gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { refused.add(err) }))
		h.scheduler.Start()
		mend := store.Cut(0)
		pass(80 * time.Second)
		if err := refused.get(); !errors.Is(err, asynclock.ErrUnreachable) || runs.Load() != 0 {
			t.Errorf("got %v and %d runs, want ErrUnreachable and none", err, runs.Load())
		}
		mend()
		if pass(time.Minute); runs.Load() != 1 {
			t.Errorf("got %d runs after the store is back, want 1", runs.Load())
		}
	})
}

// The process of a holder stops at work. Another host runs the job as soon as the TTL allows.
func TestADeadHostsJobRunsElsewhere(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		dead := newHost(t, store, nil)
		end := make(chan struct{})
		dead.every(time.Minute, func() { <-end })
		dead.scheduler.Start()
		pass(61 * time.Second)
		defer store.Pause(0)()
		defer close(end)
		other := newHost(t, store, nil)
		var runs atomic.Int64
		other.every(10*time.Second, func() { runs.Add(1) })
		other.scheduler.Start()
		if pass(11 * time.Second); runs.Load() != 0 {
			t.Error("the job ran inside the TTL of its holder")
		}
		if pass(10 * time.Second); runs.Load() != 1 {
			t.Errorf("got %d runs after the TTL, want 1", runs.Load())
		}
	})
}

// gocron drops the error of Unlock. The key must be free all the same.
func TestAKeyWhoseUnlockFailsIsFreeAfterTheTTL(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store, nil)
		ran := make(chan struct{}, 1)
		h.every(time.Hour, func() { ran <- struct{}{} })
		h.scheduler.Start()
		stop := store.Every(asynclocktest.Release.On("test:job"), asynclocktest.Hang)
		defer stop()
		pass(time.Hour)
		<-ran
		other := newHost(t, store, nil).locks
		if _, err := other.TryLock(t.Context(), "test:job"); !errors.Is(err, asynclock.ErrHeld) {
			t.Errorf("at once: got %v, want ErrHeld", err)
		}
		pass(asynclock.DefaultTTL)
		hold(t, other).Unlock(t.Context())
	})
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, asynclocktest.New(), nil)
	made := func(locks *asynclock.Client, prefix string, options ...asynclock.LockOption) error {
		_, err := gocronlock.NewLocker(locks, prefix, options...)
		return err
	}
	task := func(l *gocronlock.Locker, name string, fn gocronlock.Func) error {
		_, _, err := l.Task(name, fn)
		return err
	}
	locked := func(l *gocronlock.Locker) error {
		_, err := l.Lock(t.Context(), "job")
		return err
	}
	for name, tt := range map[string]struct{ got, want error }{
		"no client":      {made(nil, ""), asynclock.ErrInvalidOption},
		"bad option":     {made(h.locks, "", asynclock.WithTTL(-1)), asynclock.ErrInvalidOption},
		"nil option":     {made(h.locks, "", nil), asynclock.ErrInvalidOption},
		"a wait":         {made(h.locks, "", asynclock.WithWait(time.Second)), asynclock.ErrInvalidOption},
		"long prefix":    {made(h.locks, strings.Repeat("x", asynclock.MaxKeyLen)), asynclock.ErrInvalidKey},
		"nil Locker":     {locked(nil), asynclock.ErrInvalidOption},
		"zero Locker":    {locked(new(gocronlock.Locker)), asynclock.ErrInvalidOption},
		"no function":    {task(h.locker, "x", nil), asynclock.ErrInvalidOption},
		"task, nil":      {task(nil, "x", noTask), asynclock.ErrInvalidOption},
		"task, zero":     {task(new(gocronlock.Locker), "x", noTask), asynclock.ErrInvalidOption},
		"no name":        {task(h.locker, "", noTask), asynclock.ErrInvalidKey},
		"not UTF-8":      {task(h.locker, "\xff", noTask), asynclock.ErrInvalidKey},
		"a long name":    {task(h.locker, strings.Repeat("x", asynclock.MaxKeyLen), noTask), asynclock.ErrInvalidKey},
		"all is well":    {made(h.locks, "", asynclock.WithMinHold(time.Minute)), nil},
		"all is well, 2": {task(h.locker, "x", noTask), nil},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, tt.got, tt.want)
		}
	}
}
