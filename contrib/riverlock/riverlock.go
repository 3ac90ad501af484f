// SPDX-License-Identifier: Apache-2.0

package riverlock

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/adapter"
)

type defaults = river.MiddlewareDefaults // embedded without an exported field

// A Middleware works jobs under a key. Make one with [PerKey]. It is safe for concurrent use.
type Middleware struct {
	defaults

	locks   *asynclock.Client
	keyOf   func(*rivertype.JobRow) string
	snooze  time.Duration
	options []asynclock.LockOption
}

var _ rivertype.WorkerMiddleware = (*Middleware)(nil)

// PerKey returns a middleware that works one job per key at a time. The function keyOf returns the key of a job, or
// nothing if the job needs no lock. A job whose key is held comes again after the snooze, which must be
// longer than 0. The options are for each lock. The error is [asynclock.ErrInvalidOption].
func PerKey(locks *asynclock.Client, keyOf func(job *rivertype.JobRow) string, snooze time.Duration, options ...asynclock.LockOption) (*Middleware, error) {
	if keyOf == nil || snooze <= 0 {
		return nil, fmt.Errorf("riverlock: %w: no function for keys, or snooze %v is not longer than 0", asynclock.ErrInvalidOption, snooze)
	}
	options = append([]asynclock.LockOption{asynclock.WithWait(0)}, options...)
	if err := adapter.Check(locks.Lock, "key", options); err != nil {
		return nil, fmt.Errorf("riverlock: %w", err)
	}
	return &Middleware{locks: locks, keyOf: keyOf, snooze: snooze, options: options}, nil
}

// Work works a job; River calls it.
func (m *Middleware) Work(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
	if m == nil || m.keyOf == nil {
		return fmt.Errorf("riverlock: %w: the Middleware was not made by PerKey", asynclock.ErrInvalidOption)
	}
	key := m.keyOf(job)
	if key == "" {
		return doInner(ctx)
	}
	begun, done := false, false
	err := m.locks.WithLock(ctx, key, func(ctx context.Context, _ *asynclock.Lease) error {
		begun = true
		err := doInner(ctx)
		done = err == nil
		return err
	}, m.options...)
	switch {
	case done:
		return nil // also after a loss: an error would have the job done twice
	case !begun && adapter.NotBegun(err):
		return river.JobSnooze(m.snooze)
	default:
		return err
	}
}
