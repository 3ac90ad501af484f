// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestMigrateTogether: every replica of a program may migrate when it starts, also while
// others use the locks, and holders notice nothing.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c := join(t, st)
		c.Hold(sqltest.Request("held", "a"))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := Migrate(t.Context(), d.Database, WithPrefix(st.settings.prefix)); err != nil {
					t.Errorf("Migrate: got %v, want no error", err)
				}
			})
		}
		for range 20 {
			c.Hold(sqltest.Request("key", "b"))
			c.Release("key", "b")
		}
		all.Wait()
		if err := c.Renew("held", "a"); err != nil {
			t.Errorf("Renew after migrations: got %v, want no error", err)
		}
	})
}

// TestMigrateInASchema: a prefix that names a schema is found there, also the second time.
func TestMigrateInASchema(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		where := map[string]string{"postgres": "SELECT current_schema()", "mysql": "SELECT DATABASE()"}[d.Kind]
		prefix := WithPrefix(d.Texts(t, where)[0] + "." + d.NewPrefix(t))
		for range 2 {
			if err := Migrate(t.Context(), d.Database, prefix); err != nil {
				t.Fatal(err)
			}
		}
		c := join(t, newStore(t, d, prefix))
		c.Hold(sqltest.Request("key", "a"))
		c.Acquire(reader("key", "b"))
	})
}

// otherTables are the store's own tables to a client of a release with another schema.
type otherTables struct{ tables }

func (otherTables) Request(_ time.Time, items []sqlconn.Item) any { return request{"another", items} }

// TestClientOfAnotherSchemaIsRefused: the routines would take its requests for something else.
func TestClientOfAnotherSchemaIsRefused(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		st.conn.Tables = otherTables{}
		got := sqltest.Join(t, st).Session.Acquire(t.Context(), []store.AcquireRequest{sqltest.Request("key", "a")})[0]
		var schema *SchemaError
		if !errors.As(got.Err, &schema) {
			t.Errorf("Acquire by a client of another schema: got %+v, want a SchemaError", got)
		}
	})
}

func TestMigrationSQLIsWhatMigrateRuns(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]Database{"PostgreSQL": Postgres(nil), "MySQL": MySQL(nil)} {
		script, err := MigrationSQL(d, WithPrefix("app.locks_"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"CREATE TABLE IF NOT EXISTS app.locks_lock (", "app.locks_acquire("} {
			if !strings.Contains(script, want) {
				t.Errorf("MigrationSQL for %s: %q is missing", name, want)
			}
		}
		if strings.Contains(script, "asynclock_") || strings.Contains(script, "INDEX IF NOT EXISTS app.") {
			t.Errorf("MigrationSQL for %s: got names that are not ours to have", name)
		}
	}
	if _, err := MigrationSQL(Database{}); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("MigrationSQL for no database: got %v, want ErrInvalidOption", err)
	}
}
