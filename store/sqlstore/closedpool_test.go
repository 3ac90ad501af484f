// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestPoolClosedByTheApplication: no request will come through, and nobody asks for ever.
func TestPoolClosedByTheApplication(t *testing.T) {
	t.Parallel()
	own := func(on func(testing.TB) sqltest.Database) func(testing.TB) (sqltest.Database, func()) {
		return func(t testing.TB) (sqltest.Database, func()) {
			t.Helper()
			d := on(t)
			return d, func() { _ = d.DB.Close() }
		}
	}
	pool := func(t testing.TB) (sqltest.Database, func()) {
		t.Helper()
		d, pool := sqltest.OnPool(t)
		return d, pool.Close
	}
	admins := map[bool]func(testing.TB) sqltest.Database{true: sqltest.OnMySQL, false: sqltest.OnPostgres}
	for name, open := range map[string]func(testing.TB) (sqltest.Database, func()){
		"postgres": own(sqltest.OnPostgres), "mysql": own(sqltest.OnMySQL), "pool of pgx": pool,
	} {
		t.Run(name, func(t *testing.T) {
			admin := admins[name == "mysql"](t)
			prefix := WithPrefix(admin.NewPrefix(t))
			if err := Migrate(t.Context(), admin.Database, prefix); err != nil {
				t.Fatal(err)
			}
			d, closePool := open(t)
			st := newStore(t, d, prefix, WithoutNotifications())
			c := join(t, st)
			closePool()
			got := c.Session.Acquire(t.Context(), []store.AcquireRequest{sqltest.Request("key", "a")})[0].Err
			if !errors.Is(got, store.ErrClosed) {
				t.Errorf("Acquire by a pool that is closed: got %v, want ErrClosed", got)
			}
			if _, err := New(t.Context(), d.Database, prefix); !errors.Is(err, store.ErrClosed) {
				t.Errorf("New with a pool that is closed: got %v, want ErrClosed", err)
			}
		})
	}
}
