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
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

func TestMiddleware(t *testing.T) {
	adapterkit.Test(t, adapterkit.Adapter{
		Key:    "account:a",
		Open:   open,
		Held:   errSnoozed,
		Silent: errSnoozed,
		Later:  errSnoozed,
		Scoped: true,
		Panics: true,
	})
}

func TestAHeldKeyIsASnooze(t *testing.T) {
	story(t, func(w *world) {
		defer w.Hold("account:a").Unlock(w.Context())
		w.wantSnoozed(w.work(w.perKey(), payment{"a"}, adapterkit.Never(w)))
		begin := time.Now()
		w.wantSnoozed(w.work(w.perKey(asynclock.WithWait(time.Minute)), payment{"a"}, adapterkit.Never(w)))
		if waited := time.Since(begin); waited != time.Minute {
			w.Errorf("WithWait: waited for %v, want a minute", waited)
		}
	})
}

func TestALongKeyIsAFailure(t *testing.T) {
	story(t, func(w *world) {
		job := w.work(w.perKey(), payment{strings.Repeat("x", 10000)}, adapterkit.Never(w))
		if err := told(job); !errors.Is(err, asynclock.ErrInvalidKey) {
			w.Errorf("got %v, want ErrInvalidKey", err)
		}
	})
}

func TestASnoozeOfTheJobIsOne(t *testing.T) {
	story(t, func(w *world) {
		job := w.work(w.perKey(), payment{"a"}, func(context.Context) error { return river.JobSnooze(time.Minute) })
		w.wantSnoozed(job)
		w.WantFree("account:a")
	})
}

func TestAJobWithoutAKeyNeedsNoLock(t *testing.T) {
	story(t, func(w *world) {
		if err := told(w.work(w.perKey(), payment{}, func(context.Context) error { return nil })); err != nil {
			w.Errorf("got %v, want no error", err)
		}
		if calls := w.Store.Calls(asynclocktest.Acquire.Any); len(calls) > 0 {
			w.Errorf("got requests %v, want none", calls)
		}
	})
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	locks := adapterkit.NewClient(t, asynclocktest.New())
	made := func(locks *asynclock.Client, key func(*rivertype.JobRow) string, snooze time.Duration, options ...asynclock.LockOption) error {
		_, err := riverlock.PerKey(locks, key, snooze, options...)
		return err
	}
	adapterkit.WantRefusals(t, func(locks *asynclock.Client, options ...asynclock.LockOption) error {
		return made(locks, account, snooze, options...)
	})
	never := adapterkit.Never(t)
	adapterkit.WantResults(t, adapterkit.Results{
		"no function":     {made(locks, nil, snooze), asynclock.ErrInvalidOption},
		"no snooze":       {made(locks, account, 0), asynclock.ErrInvalidOption},
		"zero Middleware": {new(riverlock.Middleware).Work(t.Context(), nil, never), asynclock.ErrInvalidOption},
		"no Middleware":   {(*riverlock.Middleware)(nil).Work(t.Context(), nil, never), asynclock.ErrInvalidOption},
	})
}
