// SPDX-License-Identifier: Apache-2.0

package gocronlock

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-co-op/gocron/v2"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/adapter"
)

// A Locker locks jobs. Give it to gocron.WithDistributedLocker or gocron.WithDistributedJobLocker. It is
// safe for concurrent use.
type Locker struct {
	locks   *asynclock.Client
	prefix  string
	options []asynclock.LockOption
}

var _ gocron.Locker = (*Locker)(nil)

// New makes a Locker whose keys begin with the prefix, which may be empty. The options are for each
// lock; [asynclock.WithMinHold] should be one of them. The error is [asynclock.ErrInvalidOption] or
// [asynclock.ErrInvalidKey]. It says so also of WithWait, because jobs never wait.
func New(locks *asynclock.Client, prefix string, options ...asynclock.LockOption) (*Locker, error) {
	if err := adapter.Check(locks.TryLock, prefix+"job", options); err != nil {
		return nil, fmt.Errorf("gocronlock: %w", err)
	}
	return &Locker{locks, prefix, slices.Clone(options)}, nil
}

// Lock takes the key of a job if it is free at once; gocron calls it. The errors are those of
// [asynclock.Client.TryLock].
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lease, err := l.tryLock(ctx, job)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

func (l *Locker) tryLock(ctx context.Context, job string) (*asynclock.Lease, error) {
	if l == nil {
		l = new(Locker) // whose client refuses
	}
	return l.locks.TryLock(ctx, l.prefix+job, l.options...)
}
