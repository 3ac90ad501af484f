// SPDX-License-Identifier: Apache-2.0

package cronlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/robfig/cron/v3"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/adapter"
)

// A Locker makes jobs that run under a key. It is safe for concurrent use.
type Locker struct {
	ctx    context.Context //nolint:containedctx // cron has no other place for it
	locks  *asynclock.Client
	logger cron.Logger
}

// New makes a Locker. When ctx ends, no job begins any more, and the contexts of jobs end. Skips and failures
// go to the logger, as those of cron's own wrappers. The error is [asynclock.ErrInvalidOption].
func New(ctx context.Context, locks *asynclock.Client, logger cron.Logger) (*Locker, error) {
	if ctx == nil || locks == nil || logger == nil {
		return nil, fmt.Errorf("cronlock: %w: no context, no client or no logger", asynclock.ErrInvalidOption)
	}
	return &Locker{ctx, locks, logger}, nil
}

// A Func is a job that knows its lease. Its context ends with that of the [Locker], and when the lease ends,
// with the lease's error as its cause.
type Func func(ctx context.Context, lease *asynclock.Lease) error

// Once returns a wrapper whose jobs run only if the key is free. Jobs that share a wrapper exclude each other,
// so the chain of a whole cron.Cron is not the place for it. The error is [asynclock.ErrInvalidKey] or
// [asynclock.ErrInvalidOption]. It says so also of WithWait, because jobs never wait.
func (l *Locker) Once(key string, options ...asynclock.LockOption) (cron.JobWrapper, error) {
	once, err := l.once(key, options)
	if err != nil {
		return nil, err
	}
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			once(func(context.Context, *asynclock.Lease) error {
				job.Run()
				return nil
			})
		})
	}, nil
}

// Job returns a job that calls fn under the key, if that is free. The logger has the error of fn. The errors
// are those of [Locker.Once].
func (l *Locker) Job(key string, fn Func, options ...asynclock.LockOption) (cron.Job, error) {
	if fn == nil {
		return nil, fmt.Errorf("cronlock: %w: nil function", asynclock.ErrInvalidOption)
	}
	once, err := l.once(key, options)
	if err != nil {
		return nil, err
	}
	return cron.FuncJob(func() { once(fn) }), nil
}

// once checks the arguments and returns the function that runs another under the key.
func (l *Locker) once(key string, options []asynclock.LockOption) (func(Func), error) {
	if l == nil || l.ctx == nil {
		return nil, fmt.Errorf("cronlock: %w: the Locker was not made by New", asynclock.ErrInvalidOption)
	}
	if err := adapter.Check(l.locks.TryLock, key, options); err != nil {
		return nil, fmt.Errorf("cronlock: %w", err)
	}
	options = append(slices.Clone(options), asynclock.WithWait(0))
	return func(fn Func) {
		begun := false
		err := l.locks.WithLock(l.ctx, key, func(ctx context.Context, lease *asynclock.Lease) error {
			begun = true
			return fn(ctx, lease)
		}, options...)
		l.report(key, begun, err)
	}, nil
}

// report logs what became of a job.
func (l *Locker) report(key string, begun bool, err error) {
	var held *asynclock.HeldError
	switch {
	case err == nil:
	case begun:
		l.logger.Error(err, "job failed", "key", key)
	case errors.As(err, &held):
		l.logger.Info("skip", "key", key, "holder", held.Holder, "token", held.Token)
	default:
		l.logger.Error(err, "skip", "key", key)
	}
}
