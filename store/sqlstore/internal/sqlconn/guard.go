// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/internal/sqlfence"
	"github.com/asynclock/asynclock-go/store"
)

// Guard makes what a transaction writes depend on a lease's token.
func (c *Conn) Guard(ctx context.Context, tx *sql.Tx, key string, token int64) error {
	return c.guard(key, token, c.dialect.fence.Raise(ctx, tx, c.Fence))
}

// GuardPgx is Guard for a transaction of pgx.
func (c *Conn) GuardPgx(ctx context.Context, tx pgx.Tx, key string, token int64) error {
	if c.Kind() != KindPostgres || ctx == nil || tx == nil {
		return fmt.Errorf("%w: no transaction of pgx, or a store in another database", store.ErrInvalidOption)
	}
	return c.guard(key, token, func(row string, token int64) (newest int64, err error) {
		err = tx.QueryRow(ctx, c.dialect.fence.Statement(c.Fence), row, token).Scan(&newest)
		return newest, err
	})
}

// guard raises the fence of a key, as package fencesql does.
func (c *Conn) guard(key string, token int64, raise func(row string, token int64) (int64, error)) error {
	stamp, err := fence.NewStamp(key, token)
	if err != nil {
		return err
	}
	return sqlfence.Place{Package: c.Package, Table: c.Fence}.GuardRow(c.Tables.Fence(key), stamp, raise)
}
