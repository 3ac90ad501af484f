// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
)

// Guard makes everything that a transaction writes depend on a lease's fencing token. It
// fails with [github.com/asynclock/asynclock-go/fence.ErrStale] if a later lease of the key has
// guarded a transaction that was committed. It keeps later leases' Guard waiting until this
// transaction ends. Call it before the first write, with lease.Key() and lease.Token(), and roll
// back if it fails.
//
// So the writes of a holder that overslept come before those of the next holder, or not at
// all, whatever clocks and networks do. This requires that every writer uses Guard, with the
// same store's tables. Guard does not check that the lease is still held.
//
// The transaction is the caller's own, in the store's database, of any isolation level. On
// PostgreSQL, REPEATABLE READ and SERIALIZABLE give a later lease's Guard SQLSTATE 40001
// where it would wait, if its transaction began to read before the other's commit: do that
// transaction again. The largest token of
// each key that was ever guarded is kept in a table for good.
//
// If a lock protects only one row, a column of that row does the same without locking another
// row. See docs/stores/sql.md:
//
//	UPDATE orders SET state = $1, fence = $2 WHERE id = $3 AND fence <= $2
func (st *Store) Guard(ctx context.Context, tx *sql.Tx, key string, token int64) error {
	if st.conn == nil {
		return errZero
	}
	return st.conn.Guard(ctx, tx, key, token)
}

// GuardPgx is [Store.Guard] for a transaction of pgx.
func (st *Store) GuardPgx(ctx context.Context, tx pgx.Tx, key string, token int64) error {
	if st.conn == nil {
		return errZero
	}
	return st.conn.GuardPgx(ctx, tx, key, token)
}
