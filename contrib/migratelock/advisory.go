// SPDX-License-Identifier: Apache-2.0

package migratelock

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/asynclock/asynclock-go/asynclock"
)

// WithoutAdvisoryLocks returns a connector to PostgreSQL whose connections ignore migrate's statements
// pg_advisory_lock and pg_advisory_unlock, and pass everything else on to those of inner. Open with it what
// migrate's drivers postgres and pgx/v5 get:
//
//	db := sql.OpenDB(migratelock.WithoutAdvisoryLocks(connector))
//
// The error of a connection that lacks what lib/pq's and pgx's have is [asynclock.ErrInvalidOption].
func WithoutAdvisoryLocks(inner driver.Connector) driver.Connector { return connector{inner} }

type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	able, ok := inner.(connection)
	if !ok {
		_ = inner.Close()
		return nil, fmt.Errorf("migratelock: %w: no connection to PostgreSQL: %T", asynclock.ErrInvalidOption, inner)
	}
	return unlocked{able}, nil
}

// A connection has what database/sql uses if it is there.
type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
}

// An unlocked connection takes no advisory lock.
type unlocked struct{ connection }

// ExecContext knows migrate's statements by their text. Both are without result.
func (c unlocked) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "SELECT pg_advisory_lock(") || strings.HasPrefix(query, "SELECT pg_advisory_unlock(") {
		return driver.ResultNoRows, nil
	}
	return c.connection.ExecContext(ctx, query, args)
}

// CheckNamedValue lets pgx take arguments of its own types.
func (c unlocked) CheckNamedValue(value *driver.NamedValue) error {
	if checker, ok := c.connection.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(value)
	}
	return driver.ErrSkip
}
