// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serverURL says where a server is. Without it the test is skipped, or fails where
// servers are required.
func serverURL(t testing.TB, variable string) string {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" {
		why := variable + " is not set; go run ./internal/testenv starts what it takes"
		if os.Getenv("ASYNCLOCK_REQUIRE") == "1" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return url
}

// onPostgres returns a pool for the server of the environment.
func onPostgres(t testing.TB) *sql.DB {
	t.Helper()
	return openDB(t, "pgx", serverURL(t, "ASYNCLOCK_POSTGRES_URL"))
}

func onPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), serverURL(t, "ASYNCLOCK_POSTGRES_URL"))
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

// dropAll drops the tables and routines of a prefix.
func dropAll(t testing.TB, d Database, prefix string) {
	t.Helper()
	ctx := context.Background()
	statements := `SELECT 'DROP TABLE ' || oid::regclass || ' CASCADE' FROM pg_class WHERE relkind = 'r' AND starts_with(relname, lower($1))
		UNION ALL SELECT 'DROP FUNCTION IF EXISTS ' || oid::regprocedure || ' CASCADE' FROM pg_proc WHERE starts_with(proname, lower($2))`
	rows, err := d.db.QueryContext(ctx, statements, prefix, prefix)
	if err != nil {
		t.Errorf("drop %s: %v", prefix, err)
		return
	}
	defer rows.Close()
	var drops []string
	for rows.Next() {
		var drop string
		if err := rows.Scan(&drop); err != nil {
			t.Errorf("drop %s: %v", prefix, err)
		}
		drops = append(drops, drop)
	}
	if err := rows.Err(); err != nil {
		t.Errorf("drop %s: %v", prefix, err)
	}
	for _, drop := range drops {
		if _, err := d.db.ExecContext(ctx, drop); err != nil {
			t.Errorf("%s: %v", drop, err)
		}
	}
}
