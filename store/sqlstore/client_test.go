// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// newStore opens a store.
func newStore(t testing.TB, d sqltest.Database, options ...Option) *Store {
	t.Helper()
	st, err := New(t.Context(), d.Database, append([]Option{WithoutLogger()}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// newTables makes tables of a prefix of their own and opens a store of them.
func newTables(t testing.TB, d sqltest.Database, options ...Option) *Store {
	t.Helper()
	options = append([]Option{WithPrefix(d.NewPrefix(t))}, options...)
	if err := Migrate(t.Context(), d.Database, options...); err != nil {
		t.Fatal(err)
	}
	return newStore(t, d, options...)
}

// A client is one session and what it was told.
type client struct {
	*sqltest.Client

	session *session
}

// join connects a client and waits until it is known whether notifications reach it.
func join(t testing.TB, st store.Store) *client {
	t.Helper()
	joined := sqltest.Join(t, st)
	c := &client{joined, joined.Session.(*session)}
	if c.session.inbox != nil {
		c.awaitLive()
	}
	return c
}

// awaitLive waits until notifications reach the client, and forgets what it was told before.
func (c *client) awaitLive() {
	c.T.Helper()
	for end := time.Now().Add(sqltest.Patience); !c.session.inbox.Live(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.T.Fatal("notifications don't come through")
		}
	}
	c.AwaitKind(store.EventResync) // Up
}

// suite is what every store in a database has to do.
var suite = sqltest.Suite{
	Migrate: func(ctx context.Context, d sqlconn.Database, prefix string) error {
		return Migrate(ctx, d, WithPrefix(prefix))
	},
	Open: func(ctx context.Context, d sqlconn.Database, prefix string) (sqltest.Store, error) {
		return New(ctx, d, WithPrefix(prefix))
	},
	OpenPolling: func(ctx context.Context, d sqlconn.Database, prefix string) (sqltest.Store, error) {
		return New(ctx, d, WithPrefix(prefix), WithoutNotifications())
	},
	Join: func(t testing.TB, st sqltest.Store) *sqltest.Client { t.Helper(); return join(t, st).Client },
	Call: func(ctx context.Context, st sqltest.Store, routine string, items ...sqlconn.Item) ([]sqlconn.Answer, error) {
		return st.(*Store).conn.Call(ctx, routine, items)
	},

	Rights:    sqltest.Rights{OnPostgres: "To run, on PostgreSQL", OnMySQL: "On MySQL and MariaDB procedures"},
	KeyTables: []string{"lock"},
	KeyColumn: keyColumn,
	Key:       func(key string) string { return key },
	Making: func(kind, _ string) string {
		return "(" + keyColumn[kind] + ", held_until, token, last_use) VALUES ('b', '2020-01-01', 0, '2020-01-01')"
	},
	Unused: func(kind, name string) (columns, values string) {
		return keyColumn[kind] + ", held_until, token, last_use", name + ", " + longAgo + ", 1, " + longAgo
	},
	Held: "held_until > UTC_TIMESTAMP(6)",

	Gone: "gone", GoneOwner: "owner", GoneUntil: "gone_until",
	Owner: func(owner string) string { return owner },
	Sweep: func() string { return "sweep(100)" },
}

var keyColumn = map[string]string{sqlconn.KindPostgres: "key", sqlconn.KindMySQL: "`key`"}

const longAgo = "CAST('2020-01-01' AS DATE)"
