// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// ErrIsolation says that a transaction does not run at READ COMMITTED.
var ErrIsolation = errors.New("sqlstore: the transaction is not READ COMMITTED")

// LockTx takes a lock that lasts exactly as long as a transaction of the caller's own, on
// PostgreSQL: pg_advisory_xact_lock. It waits, until ctx ends, for any other transaction that
// has the lock.
//
// This lock neither sees nor excludes the leases of a [Store]. It can't be lost before the
// transaction ends, and the writes of the transaction are rolled back if its connection is
// lost. So it needs no TTL and no token. On the other hand it keeps a connection and a
// transaction open for as long as it lasts. It protects nothing outside that database, has no
// queue to inspect, and is gone after a failover. Take several in one order, or the server
// ends one of the transactions with a deadlock. Keys are hashed to 64 bits: two that meet
// there exclude each other.
//
// The transaction has to be READ COMMITTED, PostgreSQL's default. At higher levels it would
// go on reading what was committed before it had the lock, and the lock would protect
// nothing. Such a transaction is refused with [ErrIsolation], and may go on without the lock.
//
// Errors are the driver's own, ErrIsolation and ErrInvalidKey.
func LockTx(ctx context.Context, tx *sql.Tx, key string) error {
	id, err := advisoryID(key)
	if err != nil {
		return err
	}
	if _, err = atReadCommitted(ctx, tx, "pg_advisory_xact_lock($1) IS NOT NULL", id); err != nil {
		return fmt.Errorf("sqlstore: lock %q: %w", key, err)
	}
	return nil
}

// TryLockTx is [LockTx] without the waiting: it reports whether the lock was free.
func TryLockTx(ctx context.Context, tx *sql.Tx, key string) (locked bool, err error) {
	id, err := advisoryID(key)
	if err != nil {
		return false, err
	}
	if locked, err = atReadCommitted(ctx, tx, "pg_try_advisory_xact_lock($1)", id); err != nil {
		return false, fmt.Errorf("sqlstore: try lock %q: %w", key, err)
	}
	return locked, nil
}

// atReadCommitted evaluates a condition in a transaction in which each statement sees what
// was committed when it began. Otherwise it returns ErrIsolation. PostgreSQL treats READ
// UNCOMMITTED like READ COMMITTED.
func atReadCommitted(ctx context.Context, tx *sql.Tx, what string, id int64) (is bool, err error) {
	var answer sql.NullBool
	err = tx.QueryRowContext(ctx, "SELECT CASE WHEN current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') THEN "+
		what+" END", id).Scan(&answer)
	if err == nil && !answer.Valid {
		err = ErrIsolation
	}
	return answer.Bool, err
}

// advisoryID returns the number of a key's advisory lock. The prefix that is hashed with the
// key keeps it apart from other programs' numbers.
func advisoryID(key string) (int64, error) {
	if err := sqlconn.CheckKey(key); err != nil {
		return 0, err
	}
	sum := sha256.Sum256([]byte("asynclock " + key))
	return int64(binary.BigEndian.Uint64(sum[:8])), nil
}
