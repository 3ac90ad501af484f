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
)

func TestATaskIsProcessedUnderItsKey(t *testing.T) {
	story(t, func(w *world) {
		other := newClient(w.T, w.store)
		defect := errors.New("a defect")
		for _, want := range []error{nil, defect} {
			err := w.process(func(ctx context.Context, _ *asynq.Task) error {
				if lease, ok := asynclock.LeaseFrom(ctx, "account:a"); !ok || !lease.Valid(0) {
					w.Errorf("got lease %v, want that of the key", lease)
				}
				if _, err := other.TryLock(ctx, "account:a"); !errors.Is(err, asynclock.ErrHeld) {
					w.Errorf("another client: got %v, want ErrHeld", err)
				}
				return want
			})
			if err != want { //nolint:errorlint // it must be the very same
				w.Errorf("got %v, want %v", err, want)
			}
			w.wantFree()
		}
	})
}

func TestATaskWhoseKeyIsHeldIsNotBegun(t *testing.T) {
	story(t, func(w *world) {
		lease, err := newClient(w.T, w.store).Lock(w.Context(), "account:a")
		if err != nil {
			w.Fatal(err)
		}
		defer lease.Unlock(w.Context())
		begin := time.Now()
		err = w.process(never(w.T))
		if !errors.Is(err, asynqlock.ErrNotBegun) || !errors.Is(err, asynclock.ErrHeld) || time.Since(begin) > 0 {
			w.Errorf("got %v after %v, want ErrNotBegun and ErrHeld at once", err, time.Since(begin))
		}
		err = w.process(never(w.T), asynclock.WithWait(time.Minute))
		if !errors.Is(err, asynqlock.ErrNotBegun) || time.Since(begin) != time.Minute {
			w.Errorf("WithWait: got %v after %v, want ErrNotBegun after a minute", err, time.Since(begin))
		}
	})
}

func TestATaskIsNotBegunWithoutTheStore(t *testing.T) {
	story(t, func(w *world) {
		defer w.store.Cut(0)()
		if err := w.process(never(w.T)); !errors.Is(err, asynqlock.ErrNotBegun) || !errors.Is(err, asynclock.ErrUnreachable) {
			w.Errorf("got %v, want ErrNotBegun and ErrUnreachable", err)
		}
	})
}

// The key can't be had by trying again, and somebody has to know.
func TestARequestThatCannotSucceedIsAFailure(t *testing.T) {
	story(t, func(w *world) {
		w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Fail(asynclock.ErrDenied))
		if err := w.process(never(w.T)); !errors.Is(err, asynclock.ErrDenied) || errors.Is(err, asynqlock.ErrNotBegun) {
			w.Errorf("got %v, want ErrDenied and not ErrNotBegun", err)
		}
	})
}

// The task fails because others hold a key that it requests itself. That is its own affair.
func TestAFailureOfTheTaskIsOne(t *testing.T) {
	story(t, func(w *world) {
		err := w.process(func(context.Context, *asynq.Task) error { return &asynclock.HeldError{Key: "another"} })
		if !errors.Is(err, asynclock.ErrHeld) || errors.Is(err, asynqlock.ErrNotBegun) {
			w.Errorf("got %v, want ErrHeld and not ErrNotBegun", err)
		}
	})
}

func TestATaskIsToldOfALoss(t *testing.T) {
	story(t, func(w *world) {
		halfway := errors.New("stopped halfway")
		err := w.process(func(ctx context.Context, _ *asynq.Task) error {
			w.store.Cut(0)
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, asynclock.ErrNotRenewed) {
				w.Errorf("got cause %v, want ErrNotRenewed", cause)
			}
			return halfway
		})
		if !errors.Is(err, halfway) || !errors.Is(err, asynclock.ErrLost) {
			w.Errorf("got %v, want both reasons", err)
		}
	})
}

func TestATaskThatIsDoneStaysSoAfterALoss(t *testing.T) {
	story(t, func(w *world) {
		err := w.process(func(ctx context.Context, _ *asynq.Task) error {
			_, err := w.store.Expire(ctx, "account:a")
			return err
		})
		if err != nil {
			w.Errorf("got %v, want no error", err)
		}
	})
}

func TestAnUnlockWithoutAnAnswerChangesNothing(t *testing.T) {
	story(t, func(w *world) {
		stop := w.store.Every(asynclocktest.Release.Any, asynclocktest.Refuse)
		if err := w.process(func(context.Context, *asynq.Task) error { return nil }); err != nil {
			w.Errorf("got %v, want no error", err)
		}
		pass(asynclock.DefaultTTL)
		stop()
		w.wantFree()
	})
}

func TestAPanicUnlocks(t *testing.T) {
	story(t, func(w *world) {
		func() {
			defer func() {
				if recover() == nil {
					w.Error("got no panic")
				}
			}()
			_ = w.process(func(context.Context, *asynq.Task) error { panic("a defect") })
		}()
		w.wantFree()
	})
}

func TestATaskWithoutAKeyNeedsNoLock(t *testing.T) {
	story(t, func(w *world) {
		perKey, err := asynqlock.PerKey(w.locks, account, delay)
		if err != nil {
			w.Fatal(err)
		}
		ran := false
		handler := perKey.Middleware(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { ran = true; return nil }))
		if err := handler.ProcessTask(w.Context(), asynq.NewTask("pay", nil)); err != nil || !ran {
			w.Errorf("got %v, processed %t", err, ran)
		}
		if calls := w.store.Calls(asynclocktest.Acquire.Any); len(calls) > 0 {
			w.Errorf("got requests %v, want none", calls)
		}
	})
}

func TestConfigureChangesOneErrorOnly(t *testing.T) {
	t.Parallel()
	perKey, err := asynqlock.PerKey(newClient(t, asynclocktest.New()), account, delay)
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
	story(t, func(w *world) {
		made := func(locks *asynclock.Client, key func(*asynq.Task) string, delay time.Duration, options ...asynclock.LockOption) error {
			_, err := asynqlock.PerKey(locks, key, delay, options...)
			return err
		}
		task := asynq.NewTask("pay", []byte(strings.Repeat("x", asynclock.MaxKeyLen)))
		perKey, err := asynqlock.PerKey(w.locks, account, delay)
		if err != nil {
			w.Fatal(err)
		}
		var none *asynqlock.Locker
		for name, tt := range map[string]struct{ got, want error }{
			"no client":   {made(nil, account, delay), asynclock.ErrInvalidOption},
			"no function": {made(w.locks, nil, delay), asynclock.ErrInvalidOption},
			"no delay":    {made(w.locks, account, 0), asynclock.ErrInvalidOption},
			"nil option":  {made(w.locks, account, delay, nil), asynclock.ErrInvalidOption},
			"nil Locker":  {none.Middleware(never(w.T)).ProcessTask(w.Context(), task), asynclock.ErrInvalidOption},
			"zero Locker": {new(asynqlock.Locker).Middleware(never(w.T)).ProcessTask(w.Context(), task), asynclock.ErrInvalidOption},
			"a long key":  {perKey.Middleware(never(w.T)).ProcessTask(w.Context(), task), asynclock.ErrInvalidKey},
		} {
			if !errors.Is(tt.got, tt.want) {
				w.Errorf("%s: got %v, want %v", name, tt.got, tt.want)
			}
		}
	})
}
