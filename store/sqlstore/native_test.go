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
)

// TestForgottenKeysLeaveTheirTokens: a key whose row was swept goes on above its last
// token, also where that is ahead of the clock.
func TestForgottenKeysLeaveTheirTokens(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		st := newTables(t, d)
		c, prefix := join(t, st), st.settings.prefix
		ahead := time.Now().Add(48 * time.Hour).UnixMicro()
		c.hold(request("key", "a"))
		c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a", Token: ahead}})
		c.hold(request("held", "b"))
		q := request("waited", "c")
		c.hold(q)
		q.Owner = "d"
		c.acquire(q)
		column := map[string]string{"postgres": "key", "mysql": "`key`"}[d.name]
		more := map[string]string{
			"postgres": ", inbox, watch) VALUES ('key', 'dead', '2020-01-01', '2020-01-01', 1, '', '', FALSE)",
			"mysql":    ") VALUES ('key', 'dead', '2020-01-01', '2020-01-01', 1, '')",
		}
		run(t, d, "INSERT INTO "+prefix+"waiter ("+column+", owner, alive_until, since, grant_ttl, holder"+more[d.name])
		run(t, d, "UPDATE "+prefix+"lock SET last_use = '2020-01-01'")
		run(t, d, map[string]string{"postgres": "SELECT ", "mysql": "CALL "}[d.name]+prefix+"sweep(100)")
		if got := texts(t, d, "SELECT owner FROM "+prefix+"waiter"); !slices.Equal(got, []string{"d"}) {
			t.Errorf("waiters after the sweep: got %q, want the one that is alive", got)
		}
		if got := texts(t, d, "SELECT "+column+" FROM "+prefix+"lock ORDER BY 1"); !slices.Equal(got, []string{"held", "waited"}) {
			t.Errorf("keys after the sweep: got %q, want those in use", got)
		}
		if got := c.hold(request("key", "e")); got.Token <= ahead || got.TokensFollowClock {
			t.Errorf("grant of a key that was forgotten: got %+v, want a token above %d and no spare ones", got.Grant, ahead)
		}
	})
}

// TestLockedRowDelaysNoOtherRenewal: somebody's open transaction on one lock's row costs
// the others of a batch nothing.
func TestLockedRowDelaysNoOtherRenewal(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		onTables(t, d, func(t *testing.T, st *Store, kind string) {
			c := join(t, st)
			c.hold(request("a", "a"))
			c.hold(request("b", "b"))
			tx, err := d.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			column := map[string]string{"native": "last_use", "spring": "CREATED_DATE"}[kind]
			locked := map[string]string{"postgres": "key = 'a'", "mysql": "`key` = 'a'"}[d.name]
			if kind == "spring" {
				locked = "LOCK_KEY = '" + lockKey("a") + "' AND REGION = 'DEFAULT'"
			}
			table := map[string]string{"native": "lock", "spring": "LOCK"}[kind]
			if _, err := tx.ExecContext(t.Context(), "UPDATE "+st.settings.prefix+table+" SET "+column+" = '2020-01-01' WHERE "+locked); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), besideLockedRow)
			defer cancel()
			got := c.session.Renew(ctx, []store.RenewRequest{{Key: "a", Owner: "a", TTL: long}, {Key: "b", Owner: "b", TTL: long}})
			if got[0].Err == nil || got[1].Err != nil {
				t.Errorf("Renew beside a locked row: got %v and %v, want an error and none", got[0].Err, got[1].Err)
			}
		})
	})
}

// TestOtherIsolationLevel: where the application's transactions are of another level,
// the routines' are not.
func TestOtherIsolationLevel(t *testing.T) {
	t.Parallel()
	d := onPostgres(t)
	prefix := newPrefix(t, d)
	if err := Migrate(t.Context(), d, WithPrefix(prefix)); err != nil {
		t.Fatal(err)
	}
	serializable := Postgres(openDB(t, "pgx", kit.Require(t, "ASYNCLOCK_POSTGRES_URL")+"&default_transaction_isolation=serializable"))
	st := newStore(t, serializable, WithPrefix(prefix))
	c := join(t, st)
	if !st.wholeTransactions.Load() {
		t.Error("the store did not notice that its statements would not be READ COMMITTED")
	}
	st.wholeTransactions.Store(false)
	var all sync.WaitGroup
	for i := range 8 { // which notice it together
		all.Go(func() {
			key := strconv.Itoa(i)
			if got := c.session.Acquire(t.Context(), []store.AcquireRequest{request(key, key)})[0]; got.Status != store.Granted {
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
	onEach(t, func(t *testing.T, d Database) {
		st := newTables(t, d)
		one := d
		one.db.SetMaxOpenConns(1)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
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
	onEach(t, func(t *testing.T, d Database) {
		st := newTables(t, d)
		c := join(t, st)
		tx, err := d.db.BeginTx(t.Context(), &sql.TxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.hold(request("key", "a"))
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if got := c.acquire(request("key", "b")); got.Status != store.Waiting {
			t.Errorf("Acquire after the rollback: got %+v, want Waiting behind a", got)
		}
	})
}

// TestMissingTablesAreSaid: by New and, should they go while a store runs, by requests.
func TestMissingTablesAreSaid(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		var schema *SchemaError
		prefix := newPrefix(t, d)
		if _, err := New(t.Context(), d, WithPrefix(prefix)); !errors.As(err, &schema) {
			t.Errorf("New without tables: got %v, want a SchemaError", err)
		}
		st := newTables(t, d)
		c := join(t, st)
		run(t, d, "DROP TABLE "+st.settings.prefix+"lock"+map[string]string{"postgres": " CASCADE"}[d.name])
		got := c.session.Acquire(t.Context(), []store.AcquireRequest{request("key", "a")})[0]
		if !errors.As(got.Err, &schema) {
			t.Errorf("Acquire without tables: got %+v, want a SchemaError", got)
		}
	})
}

// TestForcePassesOverTokens: the old holder may hand its key on until its TTL ends, with a
// token for each microsecond, and the next holder's is larger than all of these.
func TestForcePassesOverTokens(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		onTables(t, d, func(t *testing.T, st *Store, _ string) {
			c := join(t, st)
			first := c.hold(request("key", "a"))
			if held, err := c.session.Force(t.Context(), "key"); err != nil || !held {
				t.Fatalf("Force: got %v, %v, want true", held, err)
			}
			// long after it was granted, but for what the clients' clocks may be fast by
			last := first.Token + (long - long/100).Microseconds()
			if next := c.hold(request("key", "b")); next.Token <= last {
				t.Errorf("token after Force: got %d, want more than %d", next.Token, last)
			}
		})
	})
}
