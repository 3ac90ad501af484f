// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/asynclock/asynclock-go/internal/sqlconn"
)

// ErrIsolation says that a transaction does not run at READ COMMITTED.
var ErrIsolation = errors.New("sqlstore: the transaction is not READ COMMITTED")

// LockTx takes a lock that lasts exactly as long as a transaction of the caller's own,
// on PostgreSQL: pg_advisory_xact_lock. It waits, until ctx ends, for whoever else has
// it in a transaction.
//
// It is another lock than the leases of a [Store], which it neither sees nor excludes.
// Nobody can lose it before the transaction ends, and whatever the transaction writes is
// rolled back if its connection is lost; so it needs neither TTL nor token. In return it
// holds a connection and a transaction open for as long as it lasts, protects nothing
// outside that database, has no queue to look at, and is gone after a failover. Take
// several in one order, or the server ends one of the transactions with a deadlock.
// Keys are hashed to 64 bits: two that meet there exclude each other.
//
// The transaction has to be READ COMMITTED, PostgreSQL's default: at the levels above that
// it goes on reading what was committed before it had the lock, and the lock would protect
// nothing. It is refused with [ErrIsolation] otherwise, and may go on without the lock.
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

// atReadCommitted asks for something that is true or false, if each statement sees what
// was committed when it began. PostgreSQL takes READ UNCOMMITTED for that, too.
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
