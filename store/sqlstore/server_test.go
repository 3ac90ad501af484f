// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// onPostgres returns a pool for the server of the environment.
func onPostgres(t testing.TB) Database {
	t.Helper()
	return Postgres(openDB(t, "pgx", kit.Require(t, "ASYNCLOCK_POSTGRES_URL")))
}

// onMySQL is onPostgres on MySQL or MariaDB.
func onMySQL(t testing.TB) Database {
	t.Helper()
	return MySQL(openDB(t, "mysql", kit.Require(t, "ASYNCLOCK_MYSQL_URL")))
}

// onEach runs a test on each kind of database, side by side.
func onEach(t *testing.T, test func(t *testing.T, d Database)) {
	t.Helper()
	for name, on := range map[string]func(testing.TB) Database{"postgres": onPostgres, "mysql": onMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, on(t))
		})
	}
}

// opens make tables of each kind and open a store of them.
var opens = map[string]func(testing.TB, Database) *Store{
	"native": func(t testing.TB, d Database) *Store { t.Helper(); return newTables(t, d) },
	"spring": func(t testing.TB, d Database) *Store { t.Helper(); return newSpringTables(t, d) },
}

// onTables runs a test on our own tables and on Java's, side by side.
func onTables(t *testing.T, d Database, test func(t *testing.T, st *Store, kind string)) {
	t.Helper()
	for kind, open := range opens {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, d), kind)
		})
	}
}

func onPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), kit.Require(t, "ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func openDB(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// newPrefix makes up a prefix that nobody else uses, and drops what has it when the
// test is over.
func newPrefix(t testing.TB, d Database) string {
	t.Helper()
	prefix := "T" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12] + "_"
	t.Cleanup(func() { dropAll(t, d, prefix) })
	return prefix
}

// drops are statements that make the statements that drop the tables and routines of a
// prefix.
var drops = map[string]string{
	"postgres": `SELECT 'DROP TABLE ' || oid::regclass || ' CASCADE' FROM pg_class WHERE relkind = 'r' AND starts_with(relname, lower($1))
		UNION ALL SELECT 'DROP FUNCTION IF EXISTS ' || oid::regprocedure || ' CASCADE' FROM pg_proc WHERE starts_with(proname, lower($2))`,
	"mysql": `SELECT CONCAT('DROP TABLE ', TABLE_NAME) FROM information_schema.TABLES
			WHERE TABLE_SCHEMA = DATABASE() AND LOCATE(?, TABLE_NAME) = 1
		UNION ALL SELECT CONCAT('DROP PROCEDURE ', ROUTINE_NAME) FROM information_schema.ROUTINES
			WHERE ROUTINE_SCHEMA = DATABASE() AND LOCATE(?, ROUTINE_NAME) = 1`,
}

// dropAll drops the tables and routines of a prefix.
func dropAll(t testing.TB, d Database, prefix string) {
	t.Helper()
	for _, drop := range texts(t, d, drops[d.name], prefix, prefix) {
		run(t, d, drop)
	}
}

// run runs a statement.
func run(t testing.TB, d Database, statement string, args ...any) {
	t.Helper()
	db, release, err := d.open()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := db.ExecContext(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// texts returns the first column of what a query finds.
func texts(t testing.TB, d Database, query string, args ...any) (found []string) {
	t.Helper()
	db, release, err := d.open()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	rows, err := db.QueryContext(context.Background(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
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
