// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/asynclock/asynclock-go/internal/sqlfence"
	"github.com/asynclock/asynclock-go/store"
)

// A Database is the application's own pool of connections, and its dialect. Postgres,
// PostgresPool and MySQL make one. The store never closes the pool.
//
// Every statement takes one connection from the pool for as long as it runs, and never two at
// once. It waits 20 ms at most for a row that others have locked. So a pool of one connection is
// enough. No statement runs inside a transaction of the application: such a transaction is bound
// to a connection that the store never sees.
type Database struct {
	db      *sql.DB
	pool    *pgxpool.Pool // instead of db
	dialect *dialect
}

// A dialect has the differences between the kinds of database, besides their SQL.
type dialect struct {
	name    string             // as in the names of the files in schema
	batch   int                // how many items one call has at most; their rows are locked until its end
	failure func(error) error  // what an error means to asynclock
	state   func(error) string // the SQLSTATE of an error of the server
	missing func(error) bool   // there is no such table or routine
	// duplicate: the row exists already.
	duplicate func(error) bool
	// locked: a row, or the table, is locked by another transaction. The server rolled back.
	locked func(error) bool
	// again: the server rolled back, or the routine is missing for a moment. Try again at once.
	again func(err error, routine string) bool
	// replaced, if not nil: the routine is missing, which may last a moment while a migration
	// replaces it.
	replaced func(error) bool

	runs  string // begins a call of a routine that answers nothing
	call  func(ctx context.Context, db *sql.DB, r routineCall) (answer string, err error)
	fence *sqlfence.Dialect

	migrate func(ctx context.Context, db *sql.DB, m migration) error // one at a time in the database
	// refuses asks why the server would refuse to write locks. An empty answer means that it
	// would not refuse.
	refuses string

	questions []question // for Check
	clock     string     // asks for the server's clock, in µs since 1970
}

// A routineCall runs a routine by one statement, in a transaction of its own.
type routineCall struct {
	routine, argument string
	inLine            time.Duration // how long it waits for a locked row
	// whole: separate statements begin and end the transaction, so that it can be set to READ
	// COMMITTED.
	whole bool
}

// Kinds of database.
const (
	KindPostgres = "postgres"
	KindMySQL    = "mysql"
)

// Postgres takes a pool of database/sql for PostgreSQL.
func Postgres(db *sql.DB) Database { return Database{db: db, dialect: &postgres} }

// PostgresPool takes a pool of pgx.
func PostgresPool(pool *pgxpool.Pool) Database { return Database{pool: pool, dialect: &postgres} }

// MySQL takes a pool for MariaDB or MySQL.
func MySQL(db *sql.DB) Database { return Database{db: db, dialect: &mySQL} }

// open returns the pool for statements, and a function that gives it back.
func (d Database) open() (db *sql.DB, release func(), err error) {
	switch {
	case d.pool != nil:
		// It keeps no connection of its own between statements.
		db = stdlib.OpenDBFromPool(d.pool)
		return db, func() { _ = db.Close() }, nil // closes nothing of the pool
	case d.db != nil:
		return d.db, func() {}, nil
	}
	return nil, nil, errNoDatabase
}

var errNoDatabase = fmt.Errorf("%w: no database", store.ErrInvalidOption)
