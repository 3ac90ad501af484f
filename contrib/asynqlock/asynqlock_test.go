// SPDX-License-Identifier: Apache-2.0

package asynqlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/asynqlock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

func TestMiddleware(t *testing.T) {
	adapterkit.Test(t, adapterkit.Adapter{
		Key:    "account:a",
		Open:   func(w *adapterkit.World, work func(context.Context) error) func() error { return open(w, work) },
		Held:   asynclock.ErrHeld,
		Silent: asynclock.ErrUnreachable,
		Later:  asynqlock.ErrNotBegun,
		Scoped: true,
		Panics: true,
	})
}

func TestATaskMayWaitForItsKey(t *testing.T) {
	adapterkit.Story(t, func(w *adapterkit.World) {
		run := open(w, adapterkit.Never(w), asynclock.WithWait(time.Minute))
		defer w.Hold("account:a").Unlock(w.Context())
		begin := time.Now()
		if err := run(); !errors.Is(err, asynqlock.ErrNotBegun) || time.Since(begin) != time.Minute {
			w.Errorf("got %v after %v, want ErrNotBegun after a minute", err, time.Since(begin))
		}
	})
}

func TestATaskWithoutAKeyNeedsNoLock(t *testing.T) {
	adapterkit.Story(t, func(w *adapterkit.World) {
		perKey, err := asynqlock.PerKey(w.Client(), account, delay)
		if err != nil {
			w.Fatal(err)
		}
		ran := false
		handler := perKey.Middleware(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { ran = true; return nil }))
		if err := handler.ProcessTask(w.Context(), asynq.NewTask("pay", nil)); err != nil || !ran {
			w.Errorf("got %v, processed %t", err, ran)
		}
		if calls := w.Store.Calls(asynclocktest.Acquire.Any); len(calls) > 0 {
			w.Errorf("got requests %v, want none", calls)
		}
	})
}

func TestConfigureChangesOneErrorOnly(t *testing.T) {
	t.Parallel()
	perKey, err := asynqlock.PerKey(adapterkit.NewClient(t, asynclocktest.New()), account, delay)
	if err != nil {
		t.Fatal(err)
	}
	harmless, defect := errors.New("harmless"), errors.New("a defect")
	own := perKey.Configure(asynq.Config{
		Concurrency:    7,
		IsFailure:      func(err error) bool { return !errors.Is(err, harmless) },
		RetryDelayFunc: func(n int, _ error, _ *asynq.Task) time.Duration { return time.Duration(n) * time.Hour },
	})
	standard := perKey.Configure(asynq.Config{})
	if own.Concurrency != 7 || own.IsFailure(harmless) || !own.IsFailure(defect) || !standard.IsFailure(defect) || standard.IsFailure(nil) {
		t.Error("what is a failure has changed")
	}
	if own.RetryDelayFunc(3, defect, nil) != 3*time.Hour || standard.RetryDelayFunc(0, defect, nil) < 15*time.Second {
		t.Error("the delay after a failure has changed")
	}
	for _, c := range []asynq.Config{own, standard} {
		if c.IsFailure(asynqlock.ErrNotBegun) || c.RetryDelayFunc(3, asynqlock.ErrNotBegun, nil) != delay {
			t.Errorf("ErrNotBegun: want no failure, and a retry after %v", delay)
		}
	}
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	locks := adapterkit.NewClient(t, asynclocktest.New())
	made := func(locks *asynclock.Client, key func(*asynq.Task) string, delay time.Duration, options ...asynclock.LockOption) error {
		_, err := asynqlock.PerKey(locks, key, delay, options...)
		return err
	}
	adapterkit.WantRefusals(t, func(locks *asynclock.Client, options ...asynclock.LockOption) error {
		return made(locks, account, delay, options...)
	})
	perKey, err := asynqlock.PerKey(locks, account, delay)
	if err != nil {
		t.Fatal(err)
	}
	process := func(l *asynqlock.Locker) error {
		task := asynq.NewTask("pay", []byte(strings.Repeat("x", asynclock.MaxKeyLen)))
		return l.Middleware(asynq.NotFoundHandler()).ProcessTask(t.Context(), task)
	}
	adapterkit.WantResults(t, adapterkit.Results{
		"no function": {made(locks, nil, delay), asynclock.ErrInvalidOption},
		"no delay":    {made(locks, account, 0), asynclock.ErrInvalidOption},
		"nil Locker":  {process(nil), asynclock.ErrInvalidOption},
		"zero Locker": {process(new(asynqlock.Locker)), asynclock.ErrInvalidOption},
		"a long key":  {process(perKey), asynclock.ErrInvalidKey},
	})
}
