// SPDX-License-Identifier: Apache-2.0

package riverlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/riverlock"
)

func TestAJobRunsUnderItsKey(t *testing.T) {
	story(t, func(w *world) {
		other := newClient(w.T, w.store)
		w.wantComplete(w.work(func(ctx context.Context) error {
			if lease, ok := asynclock.LeaseFrom(ctx, "account:a"); !ok || !lease.Valid(0) {
				w.Errorf("got lease %v, want that of the key", lease)
			}
			if _, err := other.TryLock(ctx, "account:a"); !errors.Is(err, asynclock.ErrHeld) {
				w.Errorf("another client: got %v, want ErrHeld", err)
			}
			return nil
		}))
		w.wantFree()
	})
}

func TestAHeldKeyIsASnooze(t *testing.T) {
	story(t, func(w *world) {
		lease, err := newClient(w.T, w.store).Lock(w.Context(), "account:a")
		if err != nil {
			w.Fatal(err)
		}
		defer lease.Unlock(w.Context())
		begin := time.Now()
		w.wantSnoozed(w.work(never(w.T)))
		if waited := time.Since(begin); waited > 0 {
			w.Errorf("the worker was occupied for %v", waited)
		}
		w.wantSnoozed(w.work(never(w.T), asynclock.WithWait(time.Minute)))
		if waited := time.Since(begin); waited != time.Minute {
			w.Errorf("WithWait: waited for %v, want a minute", waited)
		}
	})
}

func TestASilentStoreIsASnooze(t *testing.T) {
	story(t, func(w *world) {
		defer w.store.Cut(0)()
		w.wantSnoozed(w.work(never(w.T)))
	})
}

// The key can't be had by trying again, and somebody has to know.
func TestARequestThatCannotSucceedIsAFailure(t *testing.T) {
	story(t, func(w *world) {
		w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Fail(asynclock.ErrDenied))
		w.wantFailed(w.work(never(w.T)))
		long, err := riverlock.PerKey(w.locks, func(*rivertype.JobRow) string { return strings.Repeat("x", 10000) }, snooze)
		if err != nil {
			w.Fatal(err)
		}
		w.wantFailed(w.workWith(long, payment{}, never(w.T)))
	})
}

// The job fails because others hold a key that it requests itself. That is its own affair.
func TestAFailureOfTheJobIsNoSnooze(t *testing.T) {
	story(t, func(w *world) {
		w.wantFailed(w.work(func(context.Context) error { return &asynclock.HeldError{Key: "another"} }))
		w.wantFree()
	})
}

func TestASnoozeOfTheJobIsOne(t *testing.T) {
	story(t, func(w *world) {
		w.wantSnoozed(w.work(func(context.Context) error { return river.JobSnooze(time.Minute) }))
		w.wantFree()
	})
}

func TestAJobIsToldOfALoss(t *testing.T) {
	story(t, func(w *world) {
		job := w.work(func(ctx context.Context) error {
			w.store.Cut(0)
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, asynclock.ErrNotRenewed) {
				w.Errorf("got cause %v, want ErrNotRenewed", cause)
			}
			return errors.New("stopped halfway")
		})
		w.wantFailed(job)
		if text := job.Errors[0].Error; !strings.Contains(text, "stopped halfway") || !strings.Contains(text, "lost") {
			w.Errorf("got error %q, want both reasons", text)
		}
	})
}

func TestAJobThatIsDoneStaysSoAfterALoss(t *testing.T) {
	story(t, func(w *world) {
		w.wantComplete(w.work(func(ctx context.Context) error {
			_, err := w.store.Expire(ctx, "account:a")
			return err
		}))
	})
}

func TestAnUnlockWithoutAnAnswerChangesNothing(t *testing.T) {
	story(t, func(w *world) {
		stop := w.store.Every(asynclocktest.Release.Any, asynclocktest.Refuse)
		w.wantComplete(w.work(func(context.Context) error { return nil }))
		pass(asynclock.DefaultTTL)
		stop()
		w.wantFree()
	})
}

func TestAPanicUnlocks(t *testing.T) {
	story(t, func(w *world) {
		w.wantFailed(w.work(func(context.Context) error { panic("a defect") }))
		w.wantFree()
	})
}

func TestAJobWithoutAKeyNeedsNoLock(t *testing.T) {
	story(t, func(w *world) {
		perKey, err := riverlock.PerKey(w.locks, account, snooze)
		if err != nil {
			w.Fatal(err)
		}
		w.wantComplete(w.workWith(perKey, payment{}, func(context.Context) error { return nil }))
		if calls := w.store.Calls(asynclocktest.Acquire.Any); len(calls) > 0 {
			w.Errorf("got requests %v, want none", calls)
		}
	})
}

func TestBadInputIsRefused(t *testing.T) {
	story(t, func(w *world) {
		made := func(locks *asynclock.Client, key func(*rivertype.JobRow) string, snooze time.Duration, options ...asynclock.LockOption) error {
			_, err := riverlock.PerKey(locks, key, snooze, options...)
			return err
		}
		for name, got := range map[string]error{
			"no client":       made(nil, account, snooze),
			"no function":     made(w.locks, nil, snooze),
			"no snooze":       made(w.locks, account, 0),
			"nil option":      made(w.locks, account, snooze, nil),
			"bad option":      made(w.locks, account, snooze, asynclock.WithTTL(-1)),
			"zero Middleware": new(riverlock.Middleware).Work(w.Context(), nil, never(w.T)),
			"no Middleware":   (*riverlock.Middleware)(nil).Work(w.Context(), nil, never(w.T)),
		} {
			if !errors.Is(got, asynclock.ErrInvalidOption) {
				w.Errorf("%s: got %v, want ErrInvalidOption", name, got)
			}
		}
	})
}
