// SPDX-License-Identifier: Apache-2.0

package certmagiclock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/adapter"
)

// ErrNotLocked is the error of Unlock and RenewLockLease for a name that is not locked here.
var ErrNotLocked = adapter.ErrNotLocked

type storage = certmagic.Storage // embedded without an exported field

// A Storage is another storage with other locks. Make one with [Wrap].
type Storage struct {
	storage

	locks   *asynclock.Client
	prefix  string
	options []asynclock.LockOption
	leases  adapter.Leases
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// Wrap returns a storage that passes everything on to inner, except its locks. These are in the store of the
// client, under keys that begin with the prefix, which may be empty. The options are for each lock; leases are
// renewed in any case. The error is [asynclock.ErrInvalidOption] or [asynclock.ErrInvalidKey].
func Wrap(inner certmagic.Storage, locks *asynclock.Client, prefix string, options ...asynclock.LockOption) (*Storage, error) {
	if inner == nil {
		return nil, fmt.Errorf("certmagiclock: %w: nil storage", asynclock.ErrInvalidOption)
	}
	options = append(slices.Clone(options), asynclock.WithRenewal(true))
	if err := adapter.Check(locks.Lock, prefix+"name", options); err != nil {
		return nil, fmt.Errorf("certmagiclock: %w", err)
	}
	return &Storage{storage: inner, locks: locks, prefix: prefix, options: options}, nil
}

// String names the kind of the inner storage and no field of it, which may be a password. certmagic logs its storage
// with each certificate.
func (s *Storage) String() string {
	if s == nil {
		return "<nil>"
	}
	return fmt.Sprintf("certmagiclock.Storage(%T)", s.storage)
}

// Format writes what String returns, whatever the verb.
func (s *Storage) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// MarshalText returns what String returns, for JSON and for loggers.
func (s *Storage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Lock takes a name, and waits for it as long as ctx lasts. The errors are those of [asynclock.Client.Lock].
func (s *Storage) Lock(ctx context.Context, name string) error {
	lease, err := s.locks.Lock(ctx, s.prefix+name, s.options...)
	if err != nil {
		return err
	}
	s.leases.Add(name, lease)
	return nil
}

// TryLock takes a name if it is free, and reports whether it was. The errors are those of
// [asynclock.Client.TryLock], except [asynclock.ErrHeld].
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	lease, err := s.tryLock(ctx, name)
	if err != nil {
		if errors.Is(err, asynclock.ErrHeld) {
			err = nil
		}
		return false, err
	}
	s.leases.Add(name, lease)
	return true, nil
}

// Unlock ends the lease of a name. The error is [ErrNotLocked], or one of [asynclock.Lease.Unlock]: among
// them [asynclock.ErrLost], which says that the lease has not covered all of the work.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	lease := s.leases.Take(name)
	if lease == nil {
		return fmt.Errorf("certmagiclock: %w: %q", ErrNotLocked, name)
	}
	return lease.Unlock(ctx)
}

// RenewLockLease asks the store whether the lease of a name is still held, and takes a key that was lost
// anew. The duration is ignored, because the watchdog renews the lease: see the package comment. Errors are
// [ErrNotLocked], the store's, and [asynclock.ErrHeld] if the key was lost and another has it.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	lease, alone := s.leases.Oldest(name)
	if lease == nil {
		return fmt.Errorf("certmagiclock: %w: %q", ErrNotLocked, name)
	}
	err := lease.Renew(ctx, asynclock.MinTTL) // it never shortens a lease
	if !errors.Is(err, asynclock.ErrLost) || !alone {
		return err
	}
	next, err := s.tryLock(ctx, name)
	if err != nil {
		return err
	}
	if !s.leases.Replace(name, lease, next) { // Unlock was faster
		_ = next.Unlock(ctx)
		return fmt.Errorf("certmagiclock: %w: %q", ErrNotLocked, name)
	}
	return nil
}

func (s *Storage) tryLock(ctx context.Context, name string) (*asynclock.Lease, error) {
	return s.locks.TryLock(ctx, s.prefix+name, append(slices.Clip(s.options), asynclock.WithWait(0))...)
}
