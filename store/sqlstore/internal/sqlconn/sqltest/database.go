// SPDX-License-Identifier: Apache-2.0

// Package sqltest has what tests of stores in databases share: databases, clients, and the
// tests that every such store has to pass (Suite).
package sqltest

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql" // for OpenDB
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// A Database is one that tests use.
type Database struct {
	sqlconn.Database

	DB   *sql.DB
	Kind string
}

// Postgres takes a pool for PostgreSQL.
func Postgres(db *sql.DB) Database {
	return Database{sqlconn.Postgres(db), db, sqlconn.KindPostgres}
}

// MySQL takes a pool for MariaDB or MySQL.
func MySQL(db *sql.DB) Database { return Database{sqlconn.MySQL(db), db, sqlconn.KindMySQL} }

// OnPostgres returns a pool for the server of the environment.
func OnPostgres(t testing.TB) Database {
	t.Helper()
	return Postgres(OpenDB(t, "pgx", kit.Require(t, "ASYNCLOCK_POSTGRES_URL")))
}

// OnMySQL is OnPostgres on MySQL or MariaDB.
func OnMySQL(t testing.TB) Database {
	t.Helper()
	return MySQL(OpenDB(t, "mysql", kit.Require(t, "ASYNCLOCK_MYSQL_URL")))
}

// OnPool is OnPostgres by a pool of pgx.
func OnPool(t testing.TB) (Database, *pgxpool.Pool) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), kit.Require(t, "ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	return Database{sqlconn.PostgresPool(pool), db, sqlconn.KindPostgres}, pool
}

// OnEach runs a test on each kind of database, side by side.
func OnEach(t *testing.T, test func(t *testing.T, d Database)) {
	t.Helper()
	for name, on := range map[string]func(testing.TB) Database{sqlconn.KindPostgres: OnPostgres, sqlconn.KindMySQL: OnMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, on(t))
		})
	}
}

// OpenDB opens a pool, which the end of the test closes.
func OpenDB(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// NewPrefix makes up a prefix that nobody else uses, and drops what has it when the
// test is over.
func (d Database) NewPrefix(t testing.TB) string {
	t.Helper()
	prefix := "T" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12] + "_"
	t.Cleanup(func() { d.DropAll(t, prefix) })
	return prefix
}

// drops are statements that make the statements that drop the tables and routines of a
// prefix.
var drops = map[string]string{
	sqlconn.KindPostgres: `SELECT 'DROP TABLE ' || oid::regclass || ' CASCADE' FROM pg_class WHERE relkind = 'r' AND starts_with(relname, lower($1))
		UNION ALL SELECT 'DROP FUNCTION IF EXISTS ' || oid::regprocedure || ' CASCADE' FROM pg_proc WHERE starts_with(proname, lower($2))`,
	sqlconn.KindMySQL: `SELECT CONCAT('DROP TABLE ', TABLE_NAME) FROM information_schema.TABLES
			WHERE TABLE_SCHEMA = DATABASE() AND LOCATE(?, TABLE_NAME) = 1
		UNION ALL SELECT CONCAT('DROP PROCEDURE ', ROUTINE_NAME) FROM information_schema.ROUTINES
			WHERE ROUTINE_SCHEMA = DATABASE() AND LOCATE(?, ROUTINE_NAME) = 1`,
}

// DropAll drops the tables and routines of a prefix.
func (d Database) DropAll(t testing.TB, prefix string) {
	t.Helper()
	for _, drop := range d.Texts(t, drops[d.Kind], prefix, prefix) {
		d.Run(t, drop)
	}
}

// Run runs a statement.
func (d Database) Run(t testing.TB, statement string, args ...any) {
	t.Helper()
	if _, err := d.DB.ExecContext(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// RunRoutine calls a routine that answers nothing.
func (d Database) RunRoutine(t testing.TB, routine string) {
	t.Helper()
	d.Run(t, map[string]string{sqlconn.KindPostgres: "SELECT ", sqlconn.KindMySQL: "CALL "}[d.Kind]+routine)
}

// Texts returns the first column of what a query finds.
func (d Database) Texts(t testing.TB, query string, args ...any) (found []string) {
	t.Helper()
	rows, err := d.DB.QueryContext(context.Background(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }() // what there was to read has been read
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		found = append(found, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// Begin begins a transaction at READ COMMITTED, whatever the default is.
func (d Database) Begin(t testing.TB) *sql.Tx {
	t.Helper()
	tx, err := d.DB.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // most have ended by then
	return tx
}
