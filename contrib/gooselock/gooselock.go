// SPDX-License-Identifier: Apache-2.0

package gooselock

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/pressly/goose/v3/lock"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/adapter"
)

// ErrNotLocked is the error of Unlock without a Lock.
var ErrNotLocked = adapter.ErrNotLocked

// A Locker locks migrations. Give it to goose.WithLocker. It is safe for concurrent use, and may be that of
// several providers.
type Locker struct {
	locks   *asynclock.Client
	key     string
	options []asynclock.LockOption
	leases  adapter.Leases
}

var _ lock.Locker = (*Locker)(nil)

// New makes a Locker of a key, which should name the database or its schema. The options are for each lock. The
// error is [asynclock.ErrInvalidOption] or [asynclock.ErrInvalidKey].
func New(locks *asynclock.Client, key string, options ...asynclock.LockOption) (*Locker, error) {
	if err := adapter.Check(locks.Lock, key, options); err != nil {
		return nil, fmt.Errorf("gooselock: %w", err)
	}
	return &Locker{locks: locks, key: key, options: slices.Clone(options)}, nil
}

// Lock takes the key and waits for it; goose calls it. The database is not used. The errors are those of
// [asynclock.Client.Lock].
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error {
	if l == nil {
		l = new(Locker) // whose client refuses
	}
	lease, err := l.locks.Lock(ctx, l.key, l.options...)
	if err != nil {
		return err
	}
	l.leases.Add(l.key, lease)
	return nil
}

// Unlock ends the lease; goose calls it. The error is [ErrNotLocked], or says that the lease has not covered all
// migrations: [asynclock.ErrLost], or [asynclock.ErrClosed] if the client was closed meanwhile.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error {
	if l == nil {
		l = new(Locker)
	}
	lease := l.leases.Take(l.key)
	if lease == nil {
		return fmt.Errorf("gooselock: %w", ErrNotLocked)
	}
	return adapter.Unlock(ctx, lease)
}
