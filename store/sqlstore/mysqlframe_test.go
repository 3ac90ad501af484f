// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

// onMySQLWith returns a pool of one connection whose sessions begin with a variable set.
func onMySQLWith(t *testing.T, variable, value string) Database {
	t.Helper()
	config, err := mysql.ParseDSN(kit.Require(t, "ASYNCLOCK_MYSQL_URL"))
	if err != nil {
		t.Fatal(err)
	}
	config.Params = map[string]string{variable: value}
	d := MySQL(openDB(t, "mysql", config.FormatDSN()))
	d.db.SetMaxOpenConns(1)
	return d
}

// inTurn runs a test on our own tables, and then on Java's: by one connection, whose state
// matters.
func inTurn(t *testing.T, d Database, test func(t *testing.T, st *Store)) {
	t.Helper()
	for kind, open := range opens {
		t.Run(kind, func(t *testing.T) { test(t, open(t, d)) })
	}
}

// TestGivenUpCallEnds: on MySQL a statement goes on when its client is gone. Ours wait for a
// row for about a second then, whatever the server's own patience, which is 50 s.
func TestGivenUpCallEnds(t *testing.T) {
	t.Parallel()
	d := onMySQL(t)
	onTables(t, d, func(t *testing.T, st *Store, _ string) {
		c := join(t, st)
		c.hold(request("key", "a"))
		lockRowOf(t, d, st, lockTable(st), "key")
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if got := c.session.Release(ctx, []store.ReleaseRequest{{Key: "key", Owner: "a"}})[0]; got.Err == nil {
			t.Fatalf("Release of a key whose row is locked: got %+v, want an error", got)
		}
		// InnoDB shows what it knew, if asked more often
		for end := time.Now().Add(patience); len(texts(t, d, waitsForRow["mysql"], st.settings.prefix)) > 0; time.Sleep(150 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("a call that was given up waits for its row after %v", patience)
			}
		}
	})
}

// TestPatienceOfTheApplicationStays: what a connection of the pool has set is its own.
func TestPatienceOfTheApplicationStays(t *testing.T) {
	t.Parallel()
	d := onMySQLWith(t, "innodb_lock_wait_timeout", "33")
	wantPatience := func(t *testing.T, after string) {
		t.Helper()
		if got := texts(t, d, "SELECT @@innodb_lock_wait_timeout"); !slices.Equal(got, []string{"33"}) {
			t.Errorf("innodb_lock_wait_timeout of the connection after %s: got %q, want 33", after, got)
		}
	}
	inTurn(t, d, func(t *testing.T, st *Store) {
		c := join(t, st)
		c.hold(request("key", "a"))
		wantPatience(t, "Acquire")
		if err := c.renew("key", "a"); err != nil {
			t.Fatal(err)
		}
		wantPatience(t, "Renew")
		for _, err := range c.session.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
		}
		wantPatience(t, "List")
		if _, err := c.session.Inspect(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		wantPatience(t, "Inspect")
		c.release("key", "a")
		wantPatience(t, "Release")
		if _, err := c.session.Force(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		wantPatience(t, "Force")
		if _, err := st.call(t.Context(), "ACQUIRE", []item{{Key: "key"}}); err == nil {
			t.Fatal("Acquire for no owner: got no error")
		}
		wantPatience(t, "an error")
		c.hold(request("key", "a"))
		lockRowOf(t, onMySQL(t), st, lockTable(st), "key")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		killed := make(chan struct{})
		go func() { // ends when it has killed the request, or with ctx
			defer close(killed)
			other := onMySQL(t)
			for ctx.Err() == nil {
				ids := texts(t, other, "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND LOCATE(?, trx_query) > 0", st.settings.prefix)
				if len(ids) > 0 {
					run(t, other, "KILL QUERY "+ids[0])
					return
				}
				time.Sleep(150 * time.Millisecond)
			}
		}()
		if got := c.session.Release(ctx, []store.ReleaseRequest{{Key: "key", Owner: "a"}})[0]; got.Err == nil {
			t.Errorf("Release that was killed: got %+v, want an error", got)
		}
		<-killed
		wantPatience(t, "a killed request")
	})
}

// TestReleaseThatFailsHasReleasedNothing: whichever routine is missing for a moment, because
// a migration replaces it.
func TestReleaseThatFailsHasReleasedNothing(t *testing.T) {
	t.Parallel()
	d := onMySQL(t)
	onTables(t, d, func(t *testing.T, st *Store, _ string) {
		c := join(t, st)
		migrate := func() error { return Migrate(t.Context(), d, WithPrefix(st.settings.prefix)) }
		if st.settings.spring != nil {
			migrate = func() error { return MigrateSpring(t.Context(), d, WithPrefix(st.settings.prefix)) }
		}
		failed := 0
		for _, routine := range texts(t, d, `SELECT ROUTINE_NAME FROM information_schema.ROUTINES
			WHERE ROUTINE_SCHEMA = DATABASE() AND LOCATE(?, ROUTINE_NAME) = 1`, st.settings.prefix) {
			c.hold(request("key", "a"))
			run(t, d, "DROP PROCEDURE "+routine)
			got := c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a"}})[0]
			if err := migrate(); err != nil {
				t.Fatal(err)
			}
			info, err := c.session.Inspect(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			if got.Err != nil {
				failed++
			}
			if want := got.Err != nil; info.Held != want {
				t.Errorf("without %s: Release says %+v, and held is %v", routine, got, info.Held)
			}
			c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a"}})
		}
		if failed == 0 {
			t.Error("Release needs no routine")
		}
	})
}

// TestWithoutAutocommit: a transaction that somebody left open on a connection of the pool
// is in nobody's way.
func TestWithoutAutocommit(t *testing.T) {
	t.Parallel()
	d := onMySQLWith(t, "autocommit", "0")
	inTurn(t, d, func(t *testing.T, st *Store) {
		c := join(t, st)
		table := st.settings.prefix + lockTable(st)
		texts(t, d, "SELECT 1 FROM "+table)
		c.hold(request("key", "a"))
		texts(t, d, "SELECT 1 FROM "+table)
		if err := c.renew("key", "a"); err != nil {
			t.Errorf("Renew: got %v, want no error", err)
		}
		if !c.release("key", "a") {
			t.Error("Release: got WasHeld false, want true")
		}
		if got := texts(t, onMySQL(t), "SELECT 1 FROM "+table+" WHERE "+map[bool]string{
			false: "held_until > UTC_TIMESTAMP(6)", true: "1 = 1",
		}[st.settings.spring != nil]); len(got) > 0 {
			t.Error("Release has not been committed")
		}
	})
}
