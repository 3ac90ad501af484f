// SPDX-License-Identifier: Apache-2.0

package cronlock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/cronlock"
)

// The clocks of three hosts are a second apart, and their job of a minute takes no time.
func TestAFastJobRunsOncePerInterval(t *testing.T) {
	const hosts, minutes = 3, 10
	for _, tt := range []struct {
		name    string
		options []asynclock.LockOption
		want    int64
	}{
		{"a plain lock", nil, hosts * minutes},
		{"a minimum hold", []asynclock.LockOption{asynclock.WithMinHold(50 * time.Second)}, minutes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			story(t, func(t *testing.T, store *asynclocktest.Store) {
				var runs atomic.Int64
				for range hosts {
					h := newHost(t, store)
					h.plain("1m", func() { runs.Add(1) }, tt.options...)
					pass(time.Second)
				}
				if pass(minutes * time.Minute); runs.Load() != tt.want {
					t.Errorf("got %d runs in %d intervals of %d hosts, want %d", runs.Load(), minutes, hosts, tt.want)
				}
			})
		})
	}
}

func TestAHeldKeyIsASkipWithoutWaiting(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store)
		var runs atomic.Int64
		h.plain("1m", func() { runs.Add(1) })
		lease := hold(t, newHost(t, store).locks)
		pass(61 * time.Second)
		if len(h.log.infos) != 1 || !strings.HasPrefix(h.log.infos[0], "skip [key job holder ") || h.log.err() != nil {
			t.Errorf("got log %q and %v, want a skip with the holder, and no error", h.log.infos, h.log.err())
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
		h := newHost(t, store)
		var runs atomic.Int64
		h.plain("1m", func() { runs.Add(1) })
		mend := store.Cut(0)
		if pass(80 * time.Second); runs.Load() != 0 || !errors.Is(h.log.err(), asynclock.ErrUnreachable) {
			t.Errorf("got %d runs and log %v, want none and ErrUnreachable", runs.Load(), h.log.err())
		}
		mend()
		if pass(time.Minute); runs.Load() != 1 {
			t.Errorf("got %d runs after the store is back, want 1", runs.Load())
		}
	})
}

func TestAJobIsToldOfALoss(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store)
		var cause error
		h.job("1m", func(ctx context.Context, lease *asynclock.Lease) error {
			if found, _ := asynclock.LeaseFrom(ctx, "job"); found != lease || !lease.Valid(0) {
				t.Errorf("got lease %v, want that of the context", found)
			}
			store.Cut(0)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil // as if all were well
		})
		pass(60*time.Second + asynclock.DefaultTTL)
		if !errors.Is(cause, asynclock.ErrNotRenewed) || !errors.Is(h.log.err(), asynclock.ErrLost) {
			t.Errorf("got cause %v and log %v, want ErrNotRenewed and ErrLost", cause, h.log.err())
		}
	})
}

// A plain job goes on after a loss. Its log says so, once the job is over.
func TestTheLogHasTheLossOfAPlainJob(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store)
		h.plain("1m", func() {
			if _, err := store.Expire(t.Context(), "job"); err != nil {
				t.Error(err)
			}
		})
		if pass(61 * time.Second); !errors.Is(h.log.err(), asynclock.ErrLost) {
			t.Errorf("got log %v, want ErrLost", h.log.err())
		}
	})
}

func TestAKeyWhoseUnlockFailsIsFreeAfterTheTTL(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store)
		h.plain("1h", func() {})
		stop := store.Every(asynclocktest.Release.On("job"), asynclocktest.Hang)
		defer stop()
		pass(time.Hour)
		other := newHost(t, store).locks
		if _, err := other.TryLock(t.Context(), "job"); !errors.Is(err, asynclock.ErrHeld) {
			t.Errorf("at once: got %v, want ErrHeld", err)
		}
		pass(asynclock.DefaultTTL)
		hold(t, other).Unlock(t.Context())
		if h.log.err() != nil {
			t.Errorf("got log %v, want none: the lease covered the job", h.log.err())
		}
	})
}

func TestAPanicUnlocks(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store)
		h.plain("1m", func() { panic(errors.New("a defect")) })
		if pass(61 * time.Second); h.log.err() == nil || !strings.Contains(h.log.err().Error(), "a defect") {
			t.Errorf("got log %v, want what cron.Recover says", h.log.err())
		}
		hold(t, newHost(t, store).locks).Unlock(t.Context())
	})
}

func TestAJobEndsWithTheLockersContext(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store)
		begun, failed := 0, errors.New("stopped halfway")
		h.job("1m", func(ctx context.Context, _ *asynclock.Lease) error {
			begun++
			select {
			case <-ctx.Done():
				return failed
			case <-time.After(time.Hour):
				return nil
			}
		})
		pass(61 * time.Second)
		h.end()
		if pass(0); !errors.Is(h.log.err(), failed) {
			t.Errorf("got log %v, want the error of the job", h.log.err())
		}
		if pass(2 * time.Minute); begun != 1 || !errors.Is(h.log.err(), context.Canceled) {
			t.Errorf("got %d runs and log %v, want no other run, and why", begun, h.log.err())
		}
	})
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, asynclocktest.New())
	made := func(ctx context.Context, locks *asynclock.Client, logger cron.Logger) error {
		_, err := cronlock.New(ctx, locks, logger)
		return err
	}
	once := func(l *cronlock.Locker, key string, options ...asynclock.LockOption) error {
		_, err := l.Once(key, options...)
		return err
	}
	job := func(l *cronlock.Locker, key string, fn cronlock.Func) error {
		_, err := l.Job(key, fn)
		return err
	}
	fn := func(context.Context, *asynclock.Lease) error { return nil }
	var none context.Context
	for name, tt := range map[string]struct{ got, want error }{
		"no context":  {made(none, h.locks, h.log), asynclock.ErrInvalidOption},
		"no client":   {made(t.Context(), nil, h.log), asynclock.ErrInvalidOption},
		"no logger":   {made(t.Context(), h.locks, nil), asynclock.ErrInvalidOption},
		"nil Locker":  {once(nil, "x"), asynclock.ErrInvalidOption},
		"zero Locker": {once(new(cronlock.Locker), "x"), asynclock.ErrInvalidOption},
		"no key":      {once(h.locker, ""), asynclock.ErrInvalidKey},
		"nil option":  {once(h.locker, "x", nil), asynclock.ErrInvalidOption},
		"a wait":      {once(h.locker, "x", asynclock.WithWait(time.Second)), asynclock.ErrInvalidOption},
		"no function": {job(h.locker, "x", nil), asynclock.ErrInvalidOption},
		"job, no key": {job(h.locker, "", fn), asynclock.ErrInvalidKey},
		"all is well": {job(h.locker, "x", fn), nil},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, tt.got, tt.want)
		}
	}
}
