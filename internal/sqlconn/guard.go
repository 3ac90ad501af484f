// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/asynclock/asynclock-go/store"
)

// ErrStale says that a later lease of the key has guarded a transaction already. The rejected
// transaction belongs to a lease that has ended: roll it back. [StaleError] has the tokens.
var ErrStale = errors.New("guard: stale fencing token")

// A StaleError is [ErrStale] with the tokens.
type StaleError struct {
	Key    string
	Token  int64 // ours
	Newest int64 // the largest that has guarded a transaction
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("guard: token %d of %q is stale: %d has been used", e.Token, e.Key, e.Newest)
}

// Is reports that a StaleError is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Guard makes what a transaction writes depend on a lease's token.
func (c *Conn) Guard(ctx context.Context, tx *sql.Tx, key string, token int64) error {
	return c.guard(key, token, func(name string) (newest int64, err error) {
		if c.dialect.guardRead != "" {
			if _, err := tx.ExecContext(ctx, c.fence(c.dialect.guard), name, token); err != nil {
				return 0, err
			}
			err = tx.QueryRowContext(ctx, c.fence(c.dialect.guardRead), name).Scan(&newest)
			return newest, err
		}
		err = tx.QueryRowContext(ctx, c.fence(c.dialect.guard), name, token).Scan(&newest)
		return newest, err
	})
}

// GuardPgx is Guard for a transaction of pgx.
func (c *Conn) GuardPgx(ctx context.Context, tx pgx.Tx, key string, token int64) error {
	if c.Kind() != KindPostgres {
		return fmt.Errorf("%w: a transaction of pgx, and a store in another database", store.ErrInvalidOption)
	}
	return c.guard(key, token, func(name string) (newest int64, err error) {
		err = tx.QueryRow(ctx, c.fence(c.dialect.guard), name, token).Scan(&newest)
		return newest, err
	})
}

// guard raises the fence of a key to a token, by a statement that returns the fence's new
// value.
func (c *Conn) guard(key string, token int64, raise func(name string) (int64, error)) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if token <= 0 {
		return fmt.Errorf("%w: token %d guards nothing", store.ErrInvalidOption, token)
	}
	newest, err := raise(c.Tables.Fence(key))
	switch {
	case err != nil: // unchanged: the transaction is the caller's, and so are its errors
		return fmt.Errorf("%s: guard %q: %w", c.Package, key, err)
	case newest > token:
		return &StaleError{Key: key, Token: token, Newest: newest}
	}
	return nil
}

// fence puts the name of the table into a statement.
func (c *Conn) fence(statement string) string { return fmt.Sprintf(statement, c.Fence) }
