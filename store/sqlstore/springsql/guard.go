// SPDX-License-Identifier: Apache-2.0

package springsql

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
// Every writer has to use Guard, of a store with the same table and region. Leases of Java
// have no tokens, so Guard knows nothing of them. Guard works like that of package sqlstore,
// whose documentation says more.
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
