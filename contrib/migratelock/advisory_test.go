// SPDX-License-Identifier: Apache-2.0

package migratelock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/golang-migrate/migrate/v4/database"
	pgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/database/postgres"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/migratelock"
)

// A pooler stands for PgBouncer in transaction mode in front of a PostgreSQL whose version table exists. An advisory
// lock would be left in a session of another, so that nobody gets it again.
type pooler struct {
	statements []string
	values     int // arguments that it was asked to check
}

func (p *pooler) Connect(context.Context) (driver.Conn, error) { return &pooled{pooler: p}, nil }
func (p *pooler) Driver() driver.Driver                        { return nil }

// A pooled connection has what pgx's has, as far as migrate uses it.
type pooled struct {
	*stdlib.Conn
	pooler *pooler
}

func (*pooled) Close() error                               { return nil }
func (*pooled) Ping(context.Context) error                 { return nil }
func (*pooled) ResetSession(context.Context) error         { return nil }
func (c *pooled) CheckNamedValue(*driver.NamedValue) error { c.pooler.values++; return nil }

func (c *pooled) ExecContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	c.pooler.statements = append(c.pooler.statements, query)
	if strings.Contains(query, "advisory") {
		return nil, errors.New("waits for ever")
	}
	return driver.ResultNoRows, nil
}

func (*pooled) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &one{}, nil
}

// One is an answer of a row with a 1: the version table exists.
type one struct{ read bool }

func (*one) Columns() []string { return []string{"count"} }
func (*one) Close() error      { return nil }

func (r *one) Next(row []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read, row[0] = true, int64(1)
	return nil
}

// migrate's drivers take their lock when they are made, before anybody can wrap them.
func TestWithoutAdvisoryLocksADriverTakesNone(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(db *sql.DB) (database.Driver, error){
		"postgres": func(db *sql.DB) (database.Driver, error) {
			return postgres.WithInstance(db, &postgres.Config{DatabaseName: "orders", SchemaName: "public"})
		},
		"pgx/v5": func(db *sql.DB) (database.Driver, error) {
			return pgx.WithInstance(db, &pgx.Config{DatabaseName: "orders", SchemaName: "public"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := new(pooler)
			db := sql.OpenDB(migratelock.WithoutAdvisoryLocks(server))
			defer db.Close()
			made, err := open(db)
			if err != nil {
				t.Fatal(err)
			}
			defer made.Close()
			if err := made.Run(strings.NewReader("CREATE TABLE orders ()")); err != nil {
				t.Error(err)
			}
			if got := strings.Join(server.statements, "; "); got != "CREATE TABLE orders ()" {
				t.Errorf("the server got %q, want the migration only", got)
			}
			if server.values == 0 {
				t.Error("the connection has checked none of its arguments")
			}
		})
	}
}

func TestWithoutAdvisoryLocksRefusesOtherConnections(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(migratelock.WithoutAdvisoryLocks(poor{}))
	defer db.Close()
	if err := db.PingContext(t.Context()); !errors.Is(err, asynclock.ErrInvalidOption) {
		t.Errorf("got %v, want ErrInvalidOption", err)
	}
	failing := sql.OpenDB(migratelock.WithoutAdvisoryLocks(poor{io.ErrUnexpectedEOF}))
	defer failing.Close()
	if err := failing.PingContext(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the inner connector's", err)
	}
}

// A poor connector makes connections that can hardly anything.
type poor struct{ err error }

func (p poor) Connect(context.Context) (driver.Conn, error) {
	return struct{ driver.Conn }{closed{}}, p.err
}
func (poor) Driver() driver.Driver { return nil }

type closed struct{ driver.Conn }

func (closed) Close() error { return nil }
