// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/asynclock/asynclock-go/store"
)

// ErrStale says that a later lease of the key has guarded a transaction already. What
// the transaction was to do belongs to a lease that has ended; roll it back. See
// [StaleError] for which it was.
var ErrStale = errors.New("sqlstore: stale fencing token")

// A StaleError is [ErrStale] with the tokens.
type StaleError struct {
	Key    string
	Token  int64 // ours
	Newest int64 // the largest that has guarded a transaction
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("sqlstore: token %d of %q is stale: %d has been used", e.Token, e.Key, e.Newest)
}

// Is reports that a StaleError is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Guard makes everything that a transaction writes depend on a lease's fencing token:
// it fails with [ErrStale] if a later lease of the key has guarded a transaction that
// was committed, and keeps later leases' Guard waiting until this transaction ends. Call
// it before the first write, with lease.Key() and lease.Token(), and roll back if it
// fails.
//
// So the writes of a holder that overslept come before those of the next holder, or not
// at all, whatever clocks and networks do; provided that every writer uses Guard, with
// the same store's tables. That a lease is still held it does not ask.
//
// The transaction is the caller's own, in the store's database, of any isolation level. On
// PostgreSQL, REPEATABLE READ and SERIALIZABLE give a later lease's Guard SQLSTATE 40001
// where it would wait, if its transaction began to read before the other's commit: do that
// transaction again. The largest token of
// each key that was ever guarded is kept in a table for good.
//
// Where one row is all that a lock protects, a column of its own does the same without
// another row's lock; see docs/sql.md:
//
//	UPDATE orders SET state = $1, fence = $2 WHERE id = $3 AND fence <= $2
func (st *Store) Guard(ctx context.Context, tx *sql.Tx, key string, token int64) error {
	return st.guard(key, token, func(name string) (newest int64, err error) {
		if st.dialect.guardRead != "" {
			if _, err := tx.ExecContext(ctx, st.fence(st.dialect.guard), name, token); err != nil {
				return 0, err
			}
			err = tx.QueryRowContext(ctx, st.fence(st.dialect.guardRead), name).Scan(&newest)
			return newest, err
		}
		err = tx.QueryRowContext(ctx, st.fence(st.dialect.guard), name, token).Scan(&newest)
		return newest, err
	})
}

// GuardPgx is [Store.Guard] for a transaction of pgx.
func (st *Store) GuardPgx(ctx context.Context, tx pgx.Tx, key string, token int64) error {
	if st.dialect.name != postgres.name {
		return fmt.Errorf("%w: a transaction of pgx, and a store in another database", store.ErrBadOption)
	}
	return st.guard(key, token, func(name string) (newest int64, err error) {
		err = tx.QueryRow(ctx, st.fence(st.dialect.guard), name, token).Scan(&newest)
		return newest, err
	})
}

// guard raises the fence of a key to a token, by a statement that returns how high it is
// then.
func (st *Store) guard(key string, token int64, raise func(name string) (int64, error)) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if token <= 0 {
		return fmt.Errorf("%w: token %d guards nothing", store.ErrBadOption, token)
	}
	name := keyName(key)
	if s := st.settings.spring; s != nil {
		// What is one lock to Java has one fence. Of "%%" there is none in a region's name.
		name = keyName(s.region) + "%%" + lockKey(key)
	}
	newest, err := raise(name)
	switch {
	case err != nil: // as it is: the transaction is the caller's, and so are its errors
		return fmt.Errorf("sqlstore: guard %q: %w", key, err)
	case newest > token:
		return &StaleError{Key: key, Token: token, Newest: newest}
	}
	return nil
}

// fence puts the name of the table into a statement.
func (st *Store) fence(statement string) string {
	name := st.settings.prefix + "fence"
	if st.settings.spring != nil {
		name = st.settings.prefix + "LOCK_FENCE"
	}
	return fmt.Sprintf(statement, name)
}
