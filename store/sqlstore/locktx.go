// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
)

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
// Errors are the driver's own, and ErrBadKey.
func LockTx(ctx context.Context, tx *sql.Tx, key string) error {
	id, err := advisoryID(key)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", id); err != nil {
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
	if err := tx.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock($1)", id).Scan(&locked); err != nil {
		return false, fmt.Errorf("sqlstore: try lock %q: %w", key, err)
	}
	return locked, nil
}

// advisoryID is the number of a key. What is hashed with it keeps it apart from other
// programs' numbers.
func advisoryID(key string) (int64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	sum := sha256.Sum256([]byte("asynclock " + key))
	return int64(binary.BigEndian.Uint64(sum[:8])), nil
}
