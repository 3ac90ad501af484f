// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// newTables makes tables of a prefix of their own and opens a store of them.
func newTables(t testing.TB, d sqltest.Database, options ...Option) *Store {
	t.Helper()
	options = append([]Option{WithPrefix(d.NewPrefix(t)), WithoutLogger()}, options...)
	if err := Migrate(t.Context(), d.Database, options...); err != nil {
		t.Fatal(err)
	}
	st, err := New(t.Context(), d.Database, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// suite is what every store in a database has to do.
var suite = sqltest.Suite{
	Migrate: func(ctx context.Context, d sqlconn.Database, prefix string) error {
		return Migrate(ctx, d, WithPrefix(prefix))
	},
	Open:        openStore,
	OpenPolling: openStore,
	Join:        func(t testing.TB, st sqltest.Store) *sqltest.Client { t.Helper(); return sqltest.Join(t, st) },
	Call: func(ctx context.Context, st sqltest.Store, routine string, items ...sqlconn.Item) ([]sqlconn.Answer, error) {
		return st.(*Store).conn.Call(ctx, routine, items)
	},

	Rights:    sqltest.Rights{OnPostgres: "For Java's table on PostgreSQL", OnMySQL: "for Java's table on MySQL"},
	KeyTables: []string{"LOCK", "LOCK_LEASE"},
	KeyColumn: map[string]string{sqlconn.KindPostgres: "LOCK_KEY", sqlconn.KindMySQL: "LOCK_KEY"},
	Key:       lockKey,
	Making: func(_, table string) string {
		if table == "LOCK" {
			return "(LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ('" + lockKey("b") + "', 'DEFAULT', '" +
				clientID("java") + "', '2020-01-01', '2100-01-01')"
		}
		return "(LOCK_KEY, REGION, KEY_NAME, LAST_USE) VALUES ('" + lockKey("b") + "', 'DEFAULT', 'b', '2020-01-01')"
	},
	Unused: func(_, name string) (columns, values string) {
		return "LOCK_KEY, REGION, KEY_NAME, LAST_USE", name + ", 'DEFAULT', 'old', CAST('2020-01-01' AS DATE)"
	},
	Held: "1 = 1",

	Gone: "LOCK_GONE", GoneOwner: "CLIENT_ID", GoneUntil: "GONE_UNTIL",
	Owner:    clientID,
	Sweep:    func() string { return "LOCK_SWEEP('" + time.Now().UTC().Format(timeFormat) + "', 100)" },
	Routines: "LOCK_",
}

func openStore(ctx context.Context, d sqlconn.Database, prefix string) (sqltest.Store, error) {
	return New(ctx, d, WithPrefix(prefix))
}
