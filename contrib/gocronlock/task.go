// SPDX-License-Identifier: Apache-2.0

package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/adapter"
	"github.com/asynclock/asynclock-go/internal/failure"
)

// ErrNoLease is the error of a task that gocron began without its lock, for example because the scheduler has
// an elector. The function was not called.
var ErrNoLease = errors.New("gocronlock: the task was begun without its lock")

// A Func is a job that knows its lease. Its context ends with the job's context, and when the lease ends, with
// the lease's error as its cause.
type Func func(ctx context.Context, lease *asynclock.Lease) error

// Task returns a task with a name, and the options that its job needs. The options have the name
// and the lock, whatever locker the scheduler has:
//
//	task, options, err := locker.Task("report", report)
//	…
//	job, err := scheduler.NewJob(gocron.DurationJob(time.Minute), task, options...)
//
// Make one job of each task. When fn has returned, the task unlocks. If the lease was lost meanwhile, the task
// fails with an error that matches [asynclock.ErrLost], even if fn returned nil: gocron calls
// AfterJobRunsWithError. AfterJobRuns is called when the key is free already, or at its minimum hold.
//
// Task fails with [asynclock.ErrInvalidKey] for a bad name, and with [asynclock.ErrInvalidOption] without fn.
func (l *Locker) Task(name string, fn Func) (gocron.Task, []gocron.JobOption, error) {
	if fn == nil || l == nil {
		return nil, nil, fmt.Errorf("gocronlock: %w: a task needs a Locker and a function", asynclock.ErrInvalidOption)
	}
	if err := adapter.Check(l.locks.TryLock, l.prefix+name, l.options); err != nil {
		return nil, nil, fmt.Errorf("gocronlock: %w", err)
	}
	if name == "" {
		return nil, nil, fmt.Errorf("gocronlock: %w: a task needs a name", asynclock.ErrInvalidKey)
	}
	t := &task{locker: l, name: name, fn: fn}
	return gocron.NewTask(t.run), []gocron.JobOption{gocron.WithName(name), gocron.WithDistributedJobLocker(t)}, nil
}

// A task is the locker of its own job, so that the lease finds its way to the function. gocron calls Lock, run and
// Unlock in this order, on one goroutine.
type task struct {
	locker *Locker
	name   string
	fn     Func
	lease  atomic.Pointer[asynclock.Lease] // of the run that is about to begin
}

func (t *task) Lock(ctx context.Context, _ string) (gocron.Lock, error) {
	lease, err := t.locker.tryLock(ctx, t.name)
	if err != nil {
		return nil, err
	}
	t.lease.Store(lease)
	return lease, nil
}

func (t *task) run(ctx context.Context) (err error) {
	lease := t.lease.Swap(nil)
	if lease == nil {
		return ErrNoLease
	}
	if !lease.Valid(0) {
		return fmt.Errorf("gocronlock: before the task began: %w", lease.Err()) // gocron unlocks
	}
	defer func() { err = failure.Both(err, adapter.Unlock(ctx, lease)) }()
	scoped, end := context.WithCancelCause(lease.Context())
	defer end(nil)
	defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
	return t.fn(scoped, lease)
}
