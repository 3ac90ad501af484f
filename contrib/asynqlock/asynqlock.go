// SPDX-License-Identifier: Apache-2.0

package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hibiken/asynq"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/adapter"
	"github.com/asynclock/asynclock-go/internal/backoff"
)

// ErrNotBegun is the error of a task that was not begun, because its key is held or the store can't be reached. It
// comes together with the reason, for example [asynclock.ErrHeld].
var ErrNotBegun = errors.New("asynqlock: the task was not begun")

// asLongAsTheContext is the longest wait that an option allows.
const asLongAsTheContext = 10 * 365 * 24 * time.Hour

// A Locker processes tasks under a key. Make one with [PerKey]. It is safe for concurrent use.
type Locker struct {
	locks   *asynclock.Client
	keyOf   func(*asynq.Task) string
	delay   time.Duration
	options []asynclock.LockOption
}

// PerKey makes a Locker, which lets one task per key be processed at a time. The function keyOf returns the key of a
// task, or nothing if the task needs no lock. A task whose key is held is retried after the delay, which must be
// longer than 0; asynq rounds to seconds. The options are for each lock. The error is [asynclock.ErrInvalidOption].
func PerKey(locks *asynclock.Client, keyOf func(task *asynq.Task) string, delay time.Duration, options ...asynclock.LockOption) (*Locker, error) {
	if keyOf == nil || delay <= 0 {
		return nil, fmt.Errorf("asynqlock: %w: no function for keys, or delay %v is not longer than 0", asynclock.ErrInvalidOption, delay)
	}
	options = append([]asynclock.LockOption{asynclock.WithWait(0)}, options...)
	if err := adapter.Check(locks.Lock, "key", options); err != nil {
		return nil, fmt.Errorf("asynqlock: %w", err)
	}
	return &Locker{locks: locks, keyOf: keyOf, delay: delay, options: slices.Clip(options)}, nil
}

// Configure returns the configuration, changed so that [ErrNotBegun] is no failure and its retry comes after the delay.
// Other errors are judged as before.
func (l *Locker) Configure(config asynq.Config) asynq.Config {
	isFailure, delay := config.IsFailure, config.RetryDelayFunc
	if isFailure == nil {
		isFailure = func(err error) bool { return err != nil }
	}
	if delay == nil {
		delay = asynq.DefaultRetryDelayFunc
	}
	config.IsFailure = func(err error) bool { return !errors.Is(err, ErrNotBegun) && isFailure(err) }
	config.RetryDelayFunc = func(n int, err error, task *asynq.Task) time.Duration {
		if errors.Is(err, ErrNotBegun) {
			return l.delay
		}
		return delay(n, err, task)
	}
	return config
}

// Middleware is an asynq.MiddlewareFunc, for asynq.ServeMux.Use.
func (l *Locker) Middleware(next asynq.Handler) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		if l == nil || l.keyOf == nil {
			return fmt.Errorf("asynqlock: %w: the Locker was not made by PerKey", asynclock.ErrInvalidOption)
		}
		key := l.keyOf(task)
		if key == "" {
			return next.ProcessTask(ctx, task)
		}
		process := func(ctx context.Context) error { return next.ProcessTask(ctx, task) }
		if !isLast(ctx) {
			return l.under(ctx, key, process, l.options)
		}
		for {
			err := l.under(ctx, key, process, append(l.options, asynclock.WithWait(asLongAsTheContext)))
			if !errors.Is(err, ErrNotBegun) || !backoff.Sleep(ctx, l.delay) {
				return err
			}
		}
	})
}

// isLast reports whether asynq archives the task if this attempt fails, whatever the error.
func isLast(ctx context.Context) bool {
	retried, known := asynq.GetRetryCount(ctx)
	most, limited := asynq.GetMaxRetry(ctx)
	return known && limited && retried >= most
}

// under processes a task under its key.
func (l *Locker) under(ctx context.Context, key string, process func(context.Context) error, options []asynclock.LockOption) error {
	begun, done := false, false
	err := l.locks.WithLock(ctx, key, func(ctx context.Context, _ *asynclock.Lease) error {
		begun = true
		err := process(ctx)
		done = err == nil
		return err
	}, options...)
	switch {
	case done:
		return nil // also after a loss: an error would have the task done twice
	case !begun && adapter.NotBegun(err):
		return fmt.Errorf("%w: %w", ErrNotBegun, err)
	default:
		return err
	}
}
