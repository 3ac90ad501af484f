// SPDX-License-Identifier: Apache-2.0

package gocronlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/gocronlock"
	"github.com/asynclock/asynclock-go/elect"
)

func noTask(context.Context, *asynclock.Lease) error { return nil }

// failed returns a listener for the error of a job.
func failed(to *errs) gocron.EventListener {
	return gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { to.add(err) })
}

func TestATaskHasTheLeaseAndUnlocks(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store, nil)
		runs := 0
		h.task(func(ctx context.Context, lease *asynclock.Lease) error {
			runs++
			if found, ok := asynclock.LeaseFrom(ctx, "test:job"); !ok || found != lease || lease.Token() == 0 || !lease.Valid(0) {
				t.Errorf("got lease %v with token %d, want that of the context", found, lease.Token())
			}
			return nil
		})
		h.scheduler.Start()
		if pass(121 * time.Second); runs != 2 {
			t.Errorf("got %d runs, want 2", runs)
		}
		hold(t, newHost(t, store, nil).locks).Unlock(t.Context())
	})
}

func TestATaskIsToldOfALoss(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store, nil)
		var cause error
		var told errs
		h.task(func(ctx context.Context, _ *asynclock.Lease) error {
			store.Cut(0)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil // as if all were well
		}, failed(&told))
		h.scheduler.Start()
		pass(60*time.Second + asynclock.DefaultTTL)
		if !errors.Is(cause, asynclock.ErrNotRenewed) {
			t.Errorf("the context's cause: got %v, want ErrNotRenewed", cause)
		}
		if err := told.get(); !errors.Is(err, asynclock.ErrLost) {
			t.Errorf("gocron was told %v, want ErrLost", err)
		}
	})
}

// The client hears of the loss by the answer to Unlock only.
func TestATaskWhoseUnlockFindsALossFails(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store, nil)
		var told errs
		h.task(func(ctx context.Context, _ *asynclock.Lease) error {
			_, err := store.Expire(ctx, "test:job")
			return err
		}, failed(&told))
		h.scheduler.Start()
		if pass(61 * time.Second); !errors.Is(told.get(), asynclock.ErrLost) {
			t.Errorf("gocron was told %v, want ErrLost", told.get())
		}
	})
}

// Only the store is in trouble: the lease covered the work.
func TestATaskWhoseUnlockHasNoAnswerHasNotFailed(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store, nil)
		runs := 0
		var told errs
		h.task(func(context.Context, *asynclock.Lease) error { runs++; return nil }, failed(&told))
		h.scheduler.Start()
		stop := store.Every(asynclocktest.Release.On("test:job"), asynclocktest.Refuse)
		defer stop()
		if pass(100 * time.Second); runs != 1 || told.get() != nil {
			t.Errorf("got %d runs and %v, want 1 and no error", runs, told.get())
		}
	})
}

// A listener that runs before the job may take longer than the lease lasts.
func TestATaskIsNotBegunAfterALoss(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store, nil)
		runs := 0
		var told errs
		h.task(func(context.Context, *asynclock.Lease) error { runs++; return nil }, failed(&told),
			gocron.BeforeJobRuns(func(uuid.UUID, string) {
				store.Cut(0)
				time.Sleep(asynclock.DefaultTTL)
			}))
		h.scheduler.Start()
		if pass(100 * time.Second); runs != 0 || !errors.Is(told.get(), asynclock.ErrLost) {
			t.Errorf("got %d runs and %v, want none and ErrLost", runs, told.get())
		}
	})
}

// gocron ends the job's context when the scheduler or the program stops.
func TestATaskEndsWithItsJobsContext(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store, nil)
		var lease *asynclock.Lease
		var cause error
		fn := func(ctx context.Context, l *asynclock.Lease) error {
			lease = l
			select {
			case <-ctx.Done():
				cause = context.Cause(ctx)
			case <-time.After(time.Hour):
			}
			return l.Err()
		}
		task, options, err := h.locker.Task("job", fn)
		if err != nil {
			t.Fatal(err)
		}
		stopped := errors.New("the program stops")
		ctx, stop := context.WithCancelCause(t.Context())
		var told errs
		options = append(options, gocron.WithContext(ctx), gocron.WithEventListeners(failed(&told)))
		if _, err := h.scheduler.NewJob(gocron.DurationJob(time.Minute), task, options...); err != nil {
			t.Fatal(err)
		}
		h.scheduler.Start()
		pass(61 * time.Second)
		stop(stopped)
		if pass(time.Second); !errors.Is(cause, stopped) || told.get() != nil {
			t.Errorf("got cause %v and error %v, want the program's cause, while the lease lasts", cause, told.get())
		}
		if !errors.Is(lease.Err(), asynclock.ErrUnlocked) {
			t.Errorf("got %v after the function, want ErrUnlocked", lease.Err())
		}
		pass(time.Hour)
	})
}

// An elector of package elect decides which host runs its jobs.
func TestAnElectorOfElect(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		runs := make([]int, 2)
		for i := range runs {
			var elector elect.Elector
			h := newHost(t, store, nil, gocron.WithDistributedElector(&elector))
			go func() { _ = elect.Run(ctx, h.locks, "scheduler", elector.Lead) }() // ends with ctx
			task := gocron.NewTask(func() { runs[i]++ })
			if _, err := h.scheduler.NewJob(gocron.DurationJob(time.Minute), task); err != nil {
				t.Fatal(err)
			}
			h.scheduler.Start()
		}
		pass(10*time.Minute + time.Second)
		stop()
		pass(time.Second)
		if runs[0]+runs[1] != 10 || runs[0] != 0 && runs[1] != 0 {
			t.Errorf("runs on two hosts: got %d, want 10 on one of them", runs)
		}
	})
}

type leader struct{}

func (leader) IsLeader(context.Context) error { return nil }

func TestATaskWithoutItsLockIsNotRun(t *testing.T) {
	story(t, func(t *testing.T, store *asynclocktest.Store) {
		h := newHost(t, store, nil, gocron.WithDistributedElector(leader{}))
		runs := 0
		var told errs
		h.task(func(context.Context, *asynclock.Lease) error { runs++; return nil }, failed(&told))
		h.scheduler.Start()
		if pass(61 * time.Second); runs != 0 || !errors.Is(told.get(), gocronlock.ErrNoLease) {
			t.Errorf("got %d runs and %v, want none and ErrNoLease", runs, told.get())
		}
	})
}
