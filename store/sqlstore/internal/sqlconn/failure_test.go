// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/asynclock/asynclock-go/store"
)

// A coded error is one of lib/pq, as far as the store looks at it.
type coded string

func (c coded) Error() string    { return "pq: " + string(c) }
func (c coded) SQLState() string { return string(c) }

func fromMySQL(number uint16, state string) error {
	e := &mysql.MySQLError{Number: number, Message: "no"}
	copy(e.SQLState[:], state)
	return e
}

// TestWhatErrorsMean: nothing happened, nobody knows, or never again.
func TestWhatErrorsMean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect dialect
		err     error
		want    error
	}{
		{postgres, &pgconn.PgError{Code: "08006"}, store.ErrOutcomeUnknown},
		{postgres, &pgconn.PgError{Code: "08P01"}, store.ErrOutcomeUnknown}, // PgBouncer
		{postgres, &pgconn.PgError{Code: "40003"}, store.ErrOutcomeUnknown},
		{postgres, &pgconn.PgError{Code: "40001"}, store.ErrUnreachable},
		{postgres, &pgconn.PgError{Code: "57P05"}, store.ErrUnreachable},
		{postgres, &pgconn.PgError{Code: "25P03"}, store.ErrUnreachable},
		{postgres, &pgconn.PgError{Code: "58030"}, store.ErrUnreachable},
		{postgres, &pgconn.PgError{Code: "54000"}, store.ErrUnreachable}, // too many notifications
		{postgres, &pgconn.PgError{Code: "22021"}, errServer},
		{postgres, coded("57P01"), store.ErrUnreachable},
		{postgres, coded("08006"), store.ErrOutcomeUnknown},
		{postgres, coded("28P01"), store.ErrDenied},
		{mySQL, fromMySQL(1158, "08S01"), store.ErrOutcomeUnknown},
		{mySQL, fromMySQL(1040, "08004"), store.ErrUnreachable}, // too many connections
		{mySQL, fromMySQL(1047, "08S01"), store.ErrUnreachable}, // Galera
		{mySQL, fromMySQL(2013, "HY000"), store.ErrOutcomeUnknown},
		{mySQL, fromMySQL(1969, "70100"), store.ErrOutcomeUnknown}, // max_statement_time
		{mySQL, fromMySQL(1130, "HY000"), store.ErrDenied},
		{mySQL, fromMySQL(1406, "22001"), errServer},
		{mySQL, mysql.ErrInvalidConn, store.ErrOutcomeUnknown},
	} {
		if got := c.dialect.failure(fmt.Errorf("wrapped: %w", c.err)); !errors.Is(got, c.want) || !errors.Is(got, c.err) {
			t.Errorf("%s: %v: got %v, want %v", c.dialect.name, c.err, got, c.want)
		}
	}
	for _, d := range []dialect{postgres, mySQL} {
		for _, c := range []struct{ err, want error }{
			{sql.ErrConnDone, store.ErrUnreachable},
			{driver.ErrBadConn, store.ErrUnreachable},
			{&net.OpError{Op: "dial", Err: errors.New("refused")}, store.ErrUnreachable},
			{&net.OpError{Op: "read", Err: errors.New("reset")}, store.ErrOutcomeUnknown},
			{sql.ErrTxDone, store.ErrOutcomeUnknown},
			{context.Canceled, context.Canceled},
		} {
			if got := d.failure(c.err); !errors.Is(got, c.want) {
				t.Errorf("%s: %v: got %v, want %v", d.name, c.err, got, c.want)
			}
		}
	}
}

// A cutDriver is one whose connection breaks in mid-statement, and that says
// driver.ErrBadConn of it, as lib/pq does.
type cutDriver struct{ queries int }

func (d *cutDriver) Open(string) (driver.Conn, error)             { return cutConn{d}, nil }
func (d *cutDriver) Connect(context.Context) (driver.Conn, error) { return cutConn{d}, nil }
func (d *cutDriver) Driver() driver.Driver                        { return d }

type cutConn struct{ d *cutDriver }

func (c cutConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("none") }
func (c cutConn) Close() error                        { return nil }
func (c cutConn) Begin() (driver.Tx, error)           { return c, nil }
func (c cutConn) Rollback() error                     { return nil }
func (c cutConn) Commit() error                       { return driver.ErrBadConn }

func (c cutConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }

func (c cutConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	c.d.queries++
	return nil, driver.ErrBadConn
}

// TestStatementsAreNotRepeatedForOtherDrivers: the answer to the second of two releases
// would say that nothing was held.
func TestStatementsAreNotRepeatedForOtherDrivers(t *testing.T) {
	t.Parallel()
	d := new(cutDriver)
	db := sql.OpenDB(d)
	defer db.Close()
	_, err := callPostgres(t.Context(), db, routineCall{routine: "asynclock_release", argument: "{}"})
	if got := postgresFailure(err); !errors.Is(got, store.ErrOutcomeUnknown) || errors.Is(got, store.ErrUnreachable) {
		t.Errorf("a connection that broke: got %v, want ErrOutcomeUnknown", got)
	}
	if d.queries != 1 {
		t.Errorf("the statement was sent %d times, want once", d.queries)
	}
	if _, err = callInTransaction(t.Context(), db, "SELECT", "{}"); !errors.Is(postgresFailure(err), store.ErrUnreachable) {
		t.Errorf("a connection that broke before the commit: got %v, want ErrUnreachable", postgresFailure(err))
	}
}
