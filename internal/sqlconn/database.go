// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/asynclock/asynclock-go/store"
)

// A Database is the application's own pool of connections, with the dialect that it
// speaks. Postgres, PostgresPool and MySQL make one. The store never closes the pool.
//
// Every statement takes one connection from the pool for as long as it runs and no
// two at once, so that a pool of one connection is enough. No statement runs inside
// a transaction of the application: those are bound to a connection that the store
// never sees.
type Database struct {
	db      *sql.DB
	pool    *pgxpool.Pool // instead of db
	dialect *dialect
}

// A dialect is what differs between the kinds of database, besides their SQL.
type dialect struct {
	name    string             // as in the names of the files in schema
	batch   int                // how many items one call has at most; their rows are locked until its end
	failure func(error) error  // what an error means to asynclock
	state   func(error) string // the SQLSTATE of an error of the server
	missing func(error) bool   // there is no such table or routine
	// duplicate: there is such a row already.
	duplicate func(error) bool
	// again: the server rolled back, or has no such routine for a moment. Try again.
	again func(err error, routine string) bool
	// replaced, if not nil: there is no such routine, as may be for a moment while a migration
	// replaces it.
	replaced func(error) bool

	call func(ctx context.Context, db *sql.DB, r routineCall) (answer string, err error)
	// guard raises the fence of a key, the first argument, to a token, and returns how
	// high it is then; or guardRead does, if there is one.
	guard, guardRead string

	migrate func(ctx context.Context, db *sql.DB, m migration) error // one at a time in the database
	// refuses, if not empty, asks why the server would refuse to write what locks are; empty:
	// it would not.
	refuses string
}

// A routineCall runs a routine by one statement, in a transaction of its own.
type routineCall struct {
	routine, argument string
	// whole: the transaction is begun and ended by statements of their own, which can say that
	// it be READ COMMITTED.
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

// open returns what statements are run on, and what gives that back.
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
