// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestForgottenKeysLeaveTheirTokens: a key whose row was swept goes on above its last
// token, also where that is ahead of the clock.
func TestForgottenKeysLeaveTheirTokens(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c, prefix := join(t, st), st.settings.prefix
		ahead := time.Now().Add(48 * time.Hour).UnixMicro()
		c.Hold(sqltest.Request("key", "a"))
		c.Session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a", Token: ahead}})
		c.Hold(sqltest.Request("held", "b"))
		q := sqltest.Request("waited", "c")
		c.Hold(q)
		q.Owner = "d"
		c.Acquire(q)
		column := keyColumn[d.Kind]
		more := map[string]string{
			"postgres": ", inbox, watch) VALUES ('key', 'dead', '2020-01-01', '2020-01-01', 1, '', 0, 0, 0, 0, '', FALSE)",
			"mysql":    ") VALUES ('key', 'dead', '2020-01-01', '2020-01-01', 1, '', 0, 0, 0, 0)",
		}
		d.Run(t, "INSERT INTO "+prefix+"waiter ("+column+", owner, alive_until, since, grant_ttl, holder, mode, weight, extra, permits"+more[d.Kind])
		d.Run(t, "UPDATE "+prefix+"lock SET last_use = '2020-01-01'")
		d.RunRoutine(t, prefix+"sweep(100)")
		if got := d.Texts(t, "SELECT owner FROM "+prefix+"waiter"); !slices.Equal(got, []string{"d"}) {
			t.Errorf("waiters after the sweep: got %q, want the one that is alive", got)
		}
		if got := d.Texts(t, "SELECT "+column+" FROM "+prefix+"lock ORDER BY 1"); !slices.Equal(got, []string{"held", "waited"}) {
			t.Errorf("keys after the sweep: got %q, want those in use", got)
		}
		if got := c.Hold(sqltest.Request("key", "e")); got.Token <= ahead || got.TokensFollowClock {
			t.Errorf("grant of a key that was forgotten: got %+v, want a token above %d and no spare ones", got.Grant, ahead)
		}
	})
}

// TestOtherIsolationLevel: where the application's transactions are of another level,
// the routines' are not.
func TestOtherIsolationLevel(t *testing.T) {
	t.Parallel()
	d := sqltest.OnPostgres(t)
	prefix := d.NewPrefix(t)
	if err := Migrate(t.Context(), d.Database, WithPrefix(prefix)); err != nil {
		t.Fatal(err)
	}
	serializable := sqltest.Postgres(sqltest.OpenDB(t, "pgx", kit.Require(t, "ASYNCLOCK_POSTGRES_URL")+"&default_transaction_isolation=serializable"))
	st := newStore(t, serializable, WithPrefix(prefix))
	c := join(t, st)
	if !st.conn.WholeTransactions.Load() {
		t.Error("the store did not notice that its statements would not be READ COMMITTED")
	}
	st.conn.WholeTransactions.Store(false)
	var all sync.WaitGroup
	for i := range 8 { // which notice it together
		all.Go(func() {
			key := strconv.Itoa(i)
			if got := c.Session.Acquire(t.Context(), []store.AcquireRequest{sqltest.Request(key, key)})[0]; got.Status != store.Granted {
				t.Errorf("Acquire of a free key: got %+v, want Granted", got)
			}
		})
	}
	all.Wait()
}

// TestPoolOfOne: neither a client that waits for itself nor its listener needs a second
// connection.
func TestPoolOfOne(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		one := d
		one.DB.SetMaxOpenConns(1)
		ctx, cancel := context.WithTimeout(t.Context(), sqltest.Patience)
		defer cancel()
		locks, err := asynclock.New(st)
		if err != nil {
			t.Fatal(err)
		}
		others, err := asynclock.New(st)
		if err != nil {
			t.Fatal(err)
		}
		first, err := locks.Lock(ctx, "key")
		if err != nil {
			t.Fatal(err)
		}
		pending := others.LockChan(ctx, "key")
		for _, err := range locks.List(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := locks.Inspect(ctx, "key"); err != nil { // while a listing is under way
				t.Fatal(err)
			}
		}
		if err := first.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		lease, err := (<-pending).Lease()
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*asynclock.Client{locks, others} {
			if err := c.Close(ctx); err != nil {
				t.Errorf("Close: got %v, want no error", err)
			}
		}
	})
}

// TestCallersTransactionStaysOut: what the store does is neither rolled back with a
// transaction of the application nor waits for it.
func TestCallersTransactionStaysOut(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c := join(t, st)
		tx, err := d.DB.BeginTx(t.Context(), &sql.TxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.Hold(sqltest.Request("key", "a"))
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if got := c.Acquire(sqltest.Request("key", "b")); got.Status != store.Waiting {
			t.Errorf("Acquire after the rollback: got %+v, want Waiting behind a", got)
		}
	})
}

// TestMissingTablesAreSaid: by New and, should they go while a store runs, by requests.
func TestMissingTablesAreSaid(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		var schema *SchemaError
		prefix := d.NewPrefix(t)
		if _, err := New(t.Context(), d.Database, WithPrefix(prefix)); !errors.As(err, &schema) {
			t.Errorf("New without tables: got %v, want a SchemaError", err)
		}
		st := newTables(t, d)
		c := join(t, st)
		d.Run(t, "DROP TABLE "+st.settings.prefix+"lock"+map[string]string{"postgres": " CASCADE"}[d.Kind])
		for _, idle := range []int{2, 0} { // then by a new connection, which has to read the routine, too
			d.DB.SetMaxIdleConns(idle)
			got := c.Session.Acquire(t.Context(), []store.AcquireRequest{sqltest.Request("key", "a")})[0]
			if !errors.As(got.Err, &schema) {
				t.Errorf("Acquire without tables, %d connections being open: got %+v, want a SchemaError", idle, got)
			}
		}
	})
}
