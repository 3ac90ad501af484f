// SPDX-License-Identifier: Apache-2.0

package migratelock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/adapter"
)

// DefaultWait is how long Lock waits for the key without [asynclock.WithWait].
const DefaultWait = 10 * time.Second

type innerDriver = database.Driver // embedded without an exported field

// A Driver is another driver with another lock. Make one with [Wrap].
type Driver struct {
	innerDriver

	locks   *asynclock.Client
	key     string
	options []asynclock.LockOption
	end     context.CancelFunc // by Close
	ended   context.Context    //nolint:containedctx // migrate passes none

	mu    sync.Mutex
	lease *asynclock.Lease // nil: not locked
}

// Wrap returns a driver that passes everything on to inner, except its lock. The key should name the database or
// its schema. The options are for each lock. The error is [asynclock.ErrInvalidOption] or
// [asynclock.ErrInvalidKey].
func Wrap(inner database.Driver, locks *asynclock.Client, key string, options ...asynclock.LockOption) (*Driver, error) {
	if inner == nil {
		return nil, fmt.Errorf("migratelock: %w: nil driver", asynclock.ErrInvalidOption)
	}
	options = append([]asynclock.LockOption{asynclock.WithWait(DefaultWait)}, options...)
	if err := adapter.Check(locks.Lock, key, options); err != nil {
		return nil, fmt.Errorf("migratelock: %w", err)
	}
	d := &Driver{innerDriver: inner, locks: locks, key: key, options: options}
	d.ended, d.end = context.WithCancel(context.Background())
	return d, nil
}

// Open opens another inner driver, and wraps it in the same way.
func (d *Driver) Open(url string) (database.Driver, error) {
	inner, err := d.innerDriver.Open(url)
	if err != nil {
		return nil, err
	}
	return Wrap(inner, d.locks, d.key, d.options...)
}

// Lock takes the key. The error matches database.ErrLocked if another has the key, or this driver; otherwise it
// is that of [asynclock.Client.Lock].
func (d *Driver) Lock() error {
	d.mu.Lock()
	locked := d.lease != nil
	d.mu.Unlock()
	if locked {
		return database.ErrLocked
	}
	lease, err := d.locks.Lock(d.ended, d.key, d.options...)
	switch {
	case errors.Is(err, asynclock.ErrHeld):
		return fmt.Errorf("%w: %w", database.ErrLocked, err)
	case err != nil:
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease != nil || d.ended.Err() != nil { // nobody would unlock it
		_ = lease.UnlockChan(context.Background())
		return database.ErrLocked
	}
	d.lease = lease
	return nil
}

// Unlock ends the lease. The error is database.ErrNotLocked, or says that the lease has not covered all of the
// work: [asynclock.ErrLost], or [asynclock.ErrClosed] if the client was closed meanwhile.
func (d *Driver) Unlock() error {
	d.mu.Lock()
	lease := d.lease
	d.lease = nil
	d.mu.Unlock()
	if lease == nil {
		return database.ErrNotLocked
	}
	return adapter.Unlock(context.Background(), lease)
}

// SetVersion calls that of the inner driver. If the lease is lost, it refuses to begin a migration, and reports
// the loss when it has recorded the end of one.
func (d *Driver) SetVersion(version int, dirty bool) error {
	if !dirty {
		return errors.Join(d.innerDriver.SetVersion(version, false), d.lost())
	}
	if err := d.lost(); err != nil {
		return err
	}
	return d.innerDriver.SetVersion(version, true)
}

// lost returns why the lease has ended, or nil.
func (d *Driver) lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease == nil || d.lease.Valid(0) {
		return nil
	}
	return fmt.Errorf("migratelock: during the migration: %w", d.lease.Err())
}

// Close unlocks, ends a Lock that waits, and closes the inner driver.
func (d *Driver) Close() error {
	d.end()
	err := d.Unlock()
	if errors.Is(err, database.ErrNotLocked) {
		err = nil
	}
	return errors.Join(err, d.innerDriver.Close())
}
