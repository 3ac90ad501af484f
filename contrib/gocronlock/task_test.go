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
	"github.com/asynclock/asynclock-go/contrib/gocronlock"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

func noTask(context.Context, *asynclock.Lease) error { return nil }

func TestTask(t *testing.T) {
	adapterkit.Test(t, adapterkit.Adapter{
		Key: "test:job",
		Open: func(w *adapterkit.World, work func(context.Context) error) func() error {
			h, told := newHost(w, nil), new(errs)
			h.task(func(ctx context.Context, _ *asynclock.Lease) error { return work(ctx) },
				refused(told), failed(told), panicked(told))
			return h.run(told)
		},
		Every:  time.Minute,
		Held:   asynclock.ErrHeld,
		Silent: asynclock.ErrUnreachable,
		Lost:   asynclock.ErrLost,
		Scoped: true,
		Panics: true,
	})
}

// A listener that runs before the job may take longer than the lease lasts.
func TestATaskIsNotBegunAfterALoss(t *testing.T) {
	adapterkit.Story(t, func(w *adapterkit.World) {
		h := newHost(w, nil)
		runs := 0
		var told errs
		h.task(func(context.Context, *asynclock.Lease) error { runs++; return nil }, failed(&told),
			gocron.BeforeJobRuns(func(uuid.UUID, string) {
				w.Store.Cut(0)
				time.Sleep(asynclock.DefaultTTL)
			}))
		h.scheduler.Start()
		if adapterkit.Pass(100 * time.Second); runs != 0 || !errors.Is(told.get(), asynclock.ErrLost) {
			w.Errorf("got %d runs and %v, want none and ErrLost", runs, told.get())
		}
	})
}

// gocron ends the job's context when the scheduler or the program stops.
func TestATaskEndsWithItsJobsContext(t *testing.T) {
	adapterkit.Story(t, func(w *adapterkit.World) {
		h := newHost(w, nil)
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
			w.Fatal(err)
		}
		stopped := errors.New("the program stops")
		ctx, stop := context.WithCancelCause(w.Context())
		var told errs
		options = append(options, gocron.WithContext(ctx), gocron.WithEventListeners(failed(&told)))
		if _, err := h.scheduler.NewJob(gocron.DurationJob(time.Minute), task, options...); err != nil {
			w.Fatal(err)
		}
		h.scheduler.Start()
		adapterkit.Pass(61 * time.Second)
		stop(stopped)
		if adapterkit.Pass(time.Second); !errors.Is(cause, stopped) || told.get() != nil {
			w.Errorf("got cause %v and error %v, want the program's cause, while the lease lasts", cause, told.get())
		}
		if !errors.Is(lease.Err(), asynclock.ErrUnlocked) {
			w.Errorf("got %v after the function, want ErrUnlocked", lease.Err())
		}
		adapterkit.Pass(time.Hour)
	})
}

// An elector of package elect decides which host runs its jobs.
func TestAnElectorOfElect(t *testing.T) {
	adapterkit.Story(t, func(w *adapterkit.World) {
		ctx, stop := context.WithCancel(w.Context())
		defer stop()
		runs := make([]int, 2)
		for i := range runs {
			var elector elect.Elector
			h, locks := newHost(w, nil, gocron.WithDistributedElector(&elector)), w.Client()
			go func() { _ = elect.Run(ctx, locks, "scheduler", elector.Lead) }() // ends with ctx
			task := gocron.NewTask(func() { runs[i]++ })
			if _, err := h.scheduler.NewJob(gocron.DurationJob(time.Minute), task); err != nil {
				w.Fatal(err)
			}
			h.scheduler.Start()
		}
		adapterkit.Pass(10*time.Minute + time.Second)
		stop()
		adapterkit.Pass(time.Second)
		if runs[0]+runs[1] != 10 || runs[0] != 0 && runs[1] != 0 {
			w.Errorf("runs on two hosts: got %d, want 10 on one of them", runs)
		}
	})
}

type leader struct{}

func (leader) IsLeader(context.Context) error { return nil }

func TestATaskWithoutItsLockIsNotRun(t *testing.T) {
	adapterkit.Story(t, func(w *adapterkit.World) {
		h := newHost(w, nil, gocron.WithDistributedElector(leader{}))
		runs := 0
		var told errs
		h.task(func(context.Context, *asynclock.Lease) error { runs++; return nil }, failed(&told))
		h.scheduler.Start()
		if adapterkit.Pass(61 * time.Second); runs != 0 || !errors.Is(told.get(), gocronlock.ErrNoLease) {
			w.Errorf("got %d runs and %v, want none and ErrNoLease", runs, told.get())
		}
	})
}
