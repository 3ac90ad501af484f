// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// OnMySQLWith returns a pool of one connection whose sessions begin with a variable set.
func OnMySQLWith(t testing.TB, variable, value string) Database {
	t.Helper()
	config, err := mysql.ParseDSN(kit.Require(t, "ASYNCLOCK_MYSQL_URL"))
	if err != nil {
		t.Fatal(err)
	}
	config.Params = map[string]string{variable: value}
	d := MySQL(OpenDB(t, "mysql", config.FormatDSN()))
	d.DB.SetMaxOpenConns(1)
	return d
}

// givenUpCallEnds is a test: on MySQL a statement goes on when its client is gone. Ours
// wait for a row for about a second then, whatever the server's own patience, which is 50
// s.
func (s Suite) givenUpCallEnds(t *testing.T) {
	b := s.NewTables(t, OnMySQL(t))
	c := b.join(t)
	c.Hold(Request("key", "a"))
	b.lockGone(t, c, "a")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if got := c.Session.Release(ctx, []store.ReleaseRequest{{Key: "key", Owner: "a", Uncertain: true}})[0]; got.Err == nil {
		t.Fatalf("Release of an owner whose row is locked: got %+v, want an error", got)
	}
	for end := time.Now().Add(Patience); len(b.atGone(t)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a call that was given up waits for its row after %v", Patience)
		}
	}
}

// patienceOfTheApplicationStays is a test: what a connection of the pool has set is its
// own.
func (s Suite) patienceOfTheApplicationStays(t *testing.T) {
	d := OnMySQLWith(t, "innodb_lock_wait_timeout", "33")
	wantPatience := func(t *testing.T, after string) {
		t.Helper()
		if got := d.Texts(t, "SELECT @@innodb_lock_wait_timeout"); !slices.Equal(got, []string{"33"}) {
			t.Errorf("innodb_lock_wait_timeout of the connection after %s: got %q, want 33", after, got)
		}
	}
	b := s.NewTables(t, d)
	c := b.join(t)
	c.Hold(Request("key", "a"))
	wantPatience(t, "Acquire")
	if err := c.Renew("key", "a"); err != nil {
		t.Fatal(err)
	}
	wantPatience(t, "Renew")
	for _, err := range c.Session.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantPatience(t, "List")
	if _, err := c.Session.Inspect(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	wantPatience(t, "Inspect")
	c.Release("key", "a")
	wantPatience(t, "Release")
	if _, err := c.Session.Force(t.Context(), "key", 0); err != nil {
		t.Fatal(err)
	}
	wantPatience(t, "Force")
	if _, err := s.Call(t.Context(), b.Store, "ACQUIRE", sqlconn.Item{Key: "key"}); err == nil {
		t.Fatal("Acquire for no owner: got no error")
	}
	wantPatience(t, "an error")
	c.Hold(Request("key", "a"))
	onAnother := b
	onAnother.Database = OnMySQL(t)
	onAnother.lockGone(t, c, "a")
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	killed := make(chan struct{})
	go func() { // ends when it has killed the request, or with ctx
		defer close(killed)
		killWaiting(ctx, t, onAnother)
	}()
	if got := c.Session.Release(ctx, []store.ReleaseRequest{{Key: "key", Owner: "a", Uncertain: true}})[0]; got.Err == nil {
		t.Errorf("Release that was killed: got %+v, want an error", got)
	}
	<-killed
	wantPatience(t, "a killed request")
}

// lockGone keeps the row of an owner that was withdrawn locked for the rest of the test. For that row
// the server waits.
func (b Tables) lockGone(t *testing.T, c *Client, owner string) {
	t.Helper()
	c.Session.Release(t.Context(), []store.ReleaseRequest{{Key: "another", Owner: owner, Uncertain: true}})
	statement := "UPDATE " + b.Prefix + b.Gone + " SET " + b.GoneUntil + " = '2020-01-01' WHERE " + b.GoneOwner + " = '" + b.Owner(owner) + "'"
	if _, err := b.Begin(t).ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// atGone returns the connections whose statement is at a row of withdrawn owners. It does not ask InnoDB,
// which shows anybody what it knew as long as somebody asks ten times a second.
func (b Tables) atGone(t *testing.T) []string {
	t.Helper()
	return b.Texts(t, "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND LOCATE(?, INFO) > 0", b.Prefix+b.Gone)
}

// killWaiting kills a request that waits for the row of a withdrawn owner, once there is one.
func killWaiting(ctx context.Context, t *testing.T, b Tables) {
	t.Helper()
	for ctx.Err() == nil {
		if ids := b.atGone(t); len(ids) > 0 {
			b.Run(t, "KILL QUERY "+ids[0])
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// releaseThatFailsHasReleasedNothing is a test: whichever routine is missing for a moment,
// because a migration replaces it.
func (s Suite) releaseThatFailsHasReleasedNothing(t *testing.T) {
	b := s.NewTables(t, OnMySQL(t))
	c := b.join(t)
	failed := 0
	for _, routine := range b.Texts(t, `SELECT ROUTINE_NAME FROM information_schema.ROUTINES
		WHERE ROUTINE_SCHEMA = DATABASE() AND LOCATE(?, ROUTINE_NAME) = 1`, b.Prefix) {
		c.Hold(Request("key", "a"))
		b.Run(t, "DROP PROCEDURE "+routine)
		got := c.Session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a"}})[0]
		if err := s.Migrate(t.Context(), b.Database.Database, b.Prefix); err != nil {
			t.Fatal(err)
		}
		info, err := c.Session.Inspect(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		if got.Err != nil {
			failed++
		}
		if want := got.Err != nil; info.Held != want {
			t.Errorf("without %s: Release says %+v, and held is %v", routine, got, info.Held)
		}
		c.Session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a"}})
	}
	if failed == 0 {
		t.Error("Release needs no routine")
	}
}

// withoutAutocommit is a test: a transaction that somebody left open on a connection of the
// pool is in nobody's way.
func (s Suite) withoutAutocommit(t *testing.T) {
	d := OnMySQLWith(t, "autocommit", "0")
	b := s.NewTables(t, d)
	c := b.join(t)
	table := b.Prefix + b.lock()
	b.Texts(t, "SELECT 1 FROM "+table)
	c.Hold(Request("key", "a"))
	b.Texts(t, "SELECT 1 FROM "+table)
	if err := c.Renew("key", "a"); err != nil {
		t.Errorf("Renew: got %v, want no error", err)
	}
	if !c.Release("key", "a") {
		t.Error("Release: got WasHeld false, want true")
	}
	if got := OnMySQL(t).Texts(t, "SELECT 1 FROM "+table+" WHERE "+b.Held); len(got) > 0 {
		t.Error("Release has not been committed")
	}
}

// safeUpdates is a test: sql_safe_updates, which some set for all connections, refuses what
// writes to a table without naming rows by a key.
func (s Suite) safeUpdates(t *testing.T) {
	b := s.NewTables(t, OnMySQLWith(t, "sql_safe_updates", "1"))
	table := b.Prefix + b.KeyTables[len(b.KeyTables)-1]
	columns, values := b.Unused(b.Kind, "'old'")
	b.Run(t, "INSERT INTO "+table+" ("+columns+") VALUES ("+values+")")
	c := b.join(t)
	c.Hold(Request("key", "a"))
	c.Acquire(Request("key", "b"))
	if err := c.Renew("key", "a"); err != nil {
		t.Errorf("Renew: got %v, want no error", err)
	}
	for _, q := range []store.ReleaseRequest{
		{Key: "key", Owner: "b", Uncertain: true},
		{Key: "key", Owner: "a", HoldBack: time.Millisecond},
	} {
		if got := c.Session.Release(t.Context(), []store.ReleaseRequest{q})[0]; got.Err != nil {
			t.Errorf("Release: got %v, want no error", got.Err)
		}
	}
	c.Hold(Request("other", "a"))
	if _, err := c.Session.Force(t.Context(), "other", 0); err != nil {
		t.Errorf("Force: got %v, want no error", err)
	}
	if err := b.Store.Guard(t.Context(), OnMySQLWith(t, "sql_safe_updates", "1").Begin(t), "key", 5); err != nil {
		t.Errorf("Guard: got %v, want no error", err)
	}
	b.sweep(t)
	if got := b.Texts(t, "SELECT 1 FROM "+table+" WHERE LAST_USE = '2020-01-01'"); len(got) > 0 {
		t.Errorf("keys that nobody has used for years, after a sweep: got %d, want none", len(got))
	}
}
