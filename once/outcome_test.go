// SPDX-License-Identifier: Apache-2.0

package once_test

import (
	"context"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/once"
)

// The last attempt of an interval is told from one that has ended.
func TestTheLastAttemptIsRunning(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.client(), w.client()
		job := w.begin(a, once.WithAttempts(1))
		o, err := once.Do(w.Context(), b, key, every, w.never, once.WithAttempts(1))
		if err != nil || o.Ran || !o.Running {
			w.Errorf("Do: got %+v, error %v; want another to run the job", o, err)
		}
		job.ends(nil)
		w.wantDone(b, once.WithAttempts(1))
	})
}

// The store refuses the record of the end, and the lease lasts.
func TestAnEndThatIsRefusedIsAnError(t *testing.T) {
	story(t, func(w *world) {
		o, err := once.Do(w.Context(), w.client(), key, every, func(context.Context, once.Run) error {
			w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Fail(asynclock.ErrStolen))
			return nil
		})
		w.wantError(err, asynclock.ErrStolen)
		if !o.Ran || !o.Last.Ended.IsZero() {
			w.Errorf("the outcome: got %+v, want a run whose end is not recorded", o)
		}
	})
}

// The end of such a run can't be recorded: the next call runs the job again. So Every does not go on.
func TestAJobMustNotUnlock(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		runs := 0
		job := func(ctx context.Context, run once.Run) error {
			runs++
			return run.Lease.Unlock(ctx)
		}
		outcome, err := once.Do(w.Context(), c, key, every, job)
		w.wantError(err, asynclock.ErrInvalidOption)
		w.wantError(err, asynclock.ErrUnlocked)
		if !outcome.Ran || !outcome.Last.Ended.IsZero() {
			w.Errorf("got %+v, want a run without an end", outcome)
		}
		err = once.Every(w.Context(), c, key, every, job)
		w.wantError(err, asynclock.ErrInvalidOption)
		if runs != 2 {
			w.Errorf("got %d runs, want one of each call", runs)
		}
	})
}
