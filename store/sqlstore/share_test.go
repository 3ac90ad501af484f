// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/sqlconn"
	"github.com/asynclock/asynclock-go/internal/sqlconn/sqltest"
	"github.com/asynclock/asynclock-go/store"
)

// reader is sqltest.Request for a reader.
func reader(key, owner string) store.AcquireRequest {
	q := sqltest.Request(key, owner)
	q.Share = store.Share{Mode: store.Shared}
	return q
}

// TestOneStepGrantsSixtyFour: so a release of a key that a thousand readers wait for keeps its row
// locked for a moment only. The next reader is asked to go on.
func TestOneStepGrantsSixtyFour(t *testing.T) {
	t.Parallel()
	const step, waiting = 64, 70
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		c := join(t, newTables(t, d))
		c.Hold(sqltest.Request("key", "writer"))
		for i := range waiting {
			c.Acquire(reader("key", strconv.Itoa(i)))
		}
		c.Release("key", "writer")
		info, err := c.Session.Inspect(t.Context(), "key")
		if err != nil || info.Waiters != waiting-step || info.Holder != "64 readers" {
			t.Fatalf("Inspect after a release for %d readers: got %+v, %v, want %d of them to hold the key", waiting, info, err, step)
		}
		if d.Kind == sqlconn.KindPostgres {
			if e := c.AwaitKind(store.EventWake); e.Owner != strconv.Itoa(step) {
				t.Errorf("EventWake: got %+v, want it for the first that waits", e)
			}
		}
		c.Hold(reader("key", strconv.Itoa(step)))
		if info, err := c.Session.Inspect(t.Context(), "key"); err != nil || info.Waiters != 0 {
			t.Errorf("Inspect after the request of the next one: got %+v, %v, want all to hold the key", info, err)
		}
	})
}

// TestMembersAreToldOfTheFirstWaiter: each one that asked for that, once.
func TestMembersAreToldOfTheFirstWaiter(t *testing.T) {
	t.Parallel()
	c := join(t, newTables(t, sqltest.OnPostgres(t)))
	q := reader("key", "a")
	q.NotifyQueued = true
	c.Hold(q)
	c.Hold(reader("key", "b"))
	q.Owner = "c"
	c.Hold(q)
	c.Acquire(sqltest.Request("key", "writer"))
	told := []string{c.AwaitKind(store.EventQueued).Owner, c.AwaitKind(store.EventQueued).Owner}
	if slices.Sort(told); !slices.Equal(told, []string{"a", "c"}) {
		t.Errorf("EventQueued: got it for %q, want it for those who asked", told)
	}
}

// TestBatchOfRenewalsComesToALockedMember: a renewal of who shares a key whose row is locked is
// sent again alone, as that of a holder.
func TestBatchOfRenewalsComesToALockedMember(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c := join(t, st)
		c.Hold(reader("key", "a"))
		c.Hold(sqltest.Request("other", "b"))
		tx := d.Begin(t)
		column := map[string]string{"postgres": "key", "mysql": "`key`"}[d.Kind]
		if _, err := tx.ExecContext(t.Context(), "SELECT 1 FROM "+st.settings.prefix+"lock WHERE "+column+" = 'key' FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
		got := c.Session.Renew(t.Context(), []store.RenewRequest{
			{Key: "key", Owner: "a", TTL: sqltest.Long, Share: store.Share{Mode: store.Shared}},
			{Key: "other", Owner: "b", TTL: sqltest.Long},
		})
		if !errors.Is(got[0].Err, store.ErrOutcomeUnknown) || got[1].Err != nil {
			t.Errorf("Renew beside a locked row: got %v and %v, want that its outcome is unknown, and no error", got[0].Err, got[1].Err)
		}
	})
}

// TestMutexLooksIntoNoOtherTable: a lock of all of a key costs what it did before keys were shared.
// So this counts how often the server looks into each table.
func TestMutexLooksIntoNoOtherTable(t *testing.T) {
	t.Parallel()
	d := sqltest.OnPostgres(t)
	st := newTables(t, d)
	d.Run(t, "CREATE OR REPLACE FUNCTION "+st.settings.prefix+"sweep(v_limit INT) RETURNS VOID LANGUAGE sql AS ''") // it comes now and then
	tx := d.Begin(t)
	call := func(text string) {
		t.Helper()
		var answer string
		if err := tx.QueryRowContext(t.Context(), "SELECT "+st.settings.prefix+text).Scan(&answer); err != nil || !strings.Contains(answer, `"s": 1`) {
			t.Fatalf("%s: got %s, %v, want it done", text, answer, err)
		}
	}
	const owner = `'{"schema": "native 2", "items": [{"key": "key", "owner": "a", "ttl": 9000000, "grant": 9000000, "alive": 9000000, "wait": true,
		"limit": 0, "ticket": 0, "token": 0, "keep": 0, "uncertain": false, "watch": false, "holder": "", "inbox": ""}]}'`
	call("acquire(" + owner + ")") // makes its row
	call("release(" + owner + ")")
	before := scans(t, tx, st.settings.prefix)
	call("acquire(" + owner + ")")
	call("renew(" + owner + ")")
	call("release(" + owner + ")")
	got := scans(t, tx, st.settings.prefix)
	for table := range got {
		got[table] -= before[table]
	}
	for table, most := range map[string]int{"lock": 6, "waiter": 6, "gone": 1, "share": 0} {
		if got[table] > most {
			t.Errorf("scans for a lock, a renewal and a release: got %v, want no more than %d of %s", got, most, table)
		}
	}
}

// scans returns how often a transaction has looked into each table.
func scans(t *testing.T, tx *sql.Tx, prefix string) map[string]int {
	t.Helper()
	rows, err := tx.QueryContext(t.Context(), `SELECT relname, COALESCE(seq_scan, 0) + COALESCE(idx_scan, 0)
		FROM pg_stat_xact_user_tables WHERE starts_with(relname, lower($1))`, prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // everything has been read
	found := make(map[string]int)
	for rows.Next() {
		var name string
		var scans int
		if err := rows.Scan(&name, &scans); err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(name, strings.ToLower(prefix))] = scans
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestMutexReadsNoMoreRows is the same on MariaDB, which counts accesses to rows.
func TestMutexReadsNoMoreRows(t *testing.T) {
	t.Parallel()
	d := sqltest.OnMySQL(t)
	if !strings.Contains(d.Texts(t, "SELECT VERSION()")[0], "MariaDB") {
		t.Skip("MySQL has its counters elsewhere")
	}
	d.DB.SetMaxOpenConns(1)
	st := newTables(t, d)
	c := join(t, st)
	d.Run(t, "CREATE OR REPLACE PROCEDURE "+st.settings.prefix+"sweep(IN v_limit INT) BEGIN END") // it comes now and then
	c.Hold(sqltest.Request("key", "before"))                                                      // makes its row
	c.Release("key", "before")
	count := func() (rows int) {
		for _, n := range d.Texts(t, `SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS
			WHERE VARIABLE_NAME IN ('HANDLER_READ_KEY', 'HANDLER_READ_NEXT', 'HANDLER_UPDATE', 'HANDLER_WRITE', 'HANDLER_DELETE')`) {
			i, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			rows += i
		}
		return rows
	}
	counts := []int{count()}
	c.Hold(sqltest.Request("key", "a"))
	counts = append(counts, count())
	if err := c.Renew("key", "a"); err != nil {
		t.Fatal(err)
	}
	counts = append(counts, count())
	c.Release("key", "a")
	counts = append(counts, count())
	for i, most := range []int{9, 5, 7} {
		if got := counts[i+1] - counts[i]; got > most {
			t.Errorf("accesses to rows for a lock, a renewal and a release: got %d for step %d, want no more than %d", got, i, most)
		}
	}
}
