// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// oddRows are updates of a row of Java's that no JdbcLockRegistry makes, but that the table takes. The column
// is that which says when the lock ends.
var oddRows = map[string][]func(column string) string{
	sqlconn.KindPostgres: {
		func(column string) string { return column + " = 'infinity'" },
		func(column string) string { return column + " = '294276-12-31'" },
		func(string) string { return "CLIENT_ID = NULL" },
		func(string) string { return "CLIENT_ID = 'jävä'" },
	},
	sqlconn.KindMySQL: {
		func(column string) string { return column + " = '2100-00-00'" },
		func(column string) string { return column + " = '9999-12-31 23:59:59.999999'" },
		func(string) string { return "CLIENT_ID = NULL" },
		func(string) string { return "CLIENT_ID = 'jävä'" },
	},
}

// TestOddRowsOfJavasTable: a row that is odd is held, is listed, and can be forced. It troubles nobody else.
func TestOddRowsOfJavasTable(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, st *Store, j java) {
		c := sqltest.Join(t, st)
		for i, odd := range oddRows[j.d.Kind] {
			c.Hold(sqltest.Request("odd", "before")) // so that its name is known
			c.Release("odd", "before")
			c.Hold(sqltest.Request("zzz", "a"))
			j.insert("odd", "DEFAULT", sqltest.Long)
			j.runLoosely("UPDATE " + j.table + " SET " + odd(j.column) + " WHERE LOCK_KEY = '" + lockKey("odd") + "'")

			waits := sqltest.Request("odd", "b")
			waits.Wait = false
			got := c.Session.Acquire(t.Context(), []store.AcquireRequest{waits, sqltest.Request("another", "b")})
			if got[0].Status != store.Held || got[1].Status != store.Granted {
				t.Errorf("odd row %d: Acquire of it and of another: got %+v, want Held and Granted", i, got)
			}
			c.Release("another", "b")
			if err := c.Renew("odd", "b"); err == nil {
				t.Errorf("odd row %d: Renew by another: got no error", i)
			}
			listed := 0
			for info, err := range c.Session.List(t.Context(), "") {
				if listed++; err != nil || !info.Held || info.Remaining <= 0 {
					t.Errorf("odd row %d: List: got %+v, %v, want it held", i, info, err)
				}
			}
			if listed != 2 {
				t.Errorf("odd row %d: List: got %d keys, want 2", i, listed)
			}
			if info, err := c.Session.Inspect(t.Context(), "odd"); err != nil || !info.Held || info.Remaining <= 0 {
				t.Errorf("odd row %d: Inspect: got %+v, %v, want it held", i, info, err)
			}
			if held, err := c.Session.Force(t.Context(), "odd", 0); err != nil || !held {
				t.Errorf("odd row %d: Force: got %v, %v, want true", i, held, err)
			}
			c.Hold(sqltest.Request("odd", "c"))
			c.Release("odd", "c")
			c.Release("zzz", "a")
		}
	})
}

// TestForceOfALeaseWithoutEnd: the next token is one that every client takes.
func TestForceOfALeaseWithoutEnd(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, st *Store, j java) {
		c := sqltest.Join(t, st)
		before := c.Hold(sqltest.Request("key", "a"))
		j.runLoosely("UPDATE " + j.table + " SET " + oddRows[j.d.Kind][0](j.column))
		if held, err := c.Session.Force(t.Context(), "key", before.Token); err != nil || !held {
			t.Fatalf("Force: got %v, %v, want true", held, err)
		}
		after := c.Hold(sqltest.Request("key", "b"))
		if got, most := after.Token-before.Token, (store.MaxTTL + sqltest.Long).Microseconds(); got <= 0 || got > most {
			t.Errorf("token after Force: got %d more, want up to %d", got, most)
		}
	})
}

// runLoosely runs a statement without the checks of MySQL's strict mode.
func (j java) runLoosely(statement string) {
	j.t.Helper()
	conn, err := j.d.DB.Conn(j.t.Context())
	if err != nil {
		j.t.Fatal(err)
	}
	defer conn.Close()
	statements := []string{statement}
	if j.d.Kind == sqlconn.KindMySQL {
		statements = []string{"SET @mode = @@sql_mode, sql_mode = ''", statement, "SET sql_mode = @mode"}
	}
	for _, s := range statements {
		if _, err := conn.ExecContext(j.t.Context(), s); err != nil {
			j.t.Fatalf("%s: %v", s, err)
		}
	}
}
