// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"database/sql"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

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
	least := []int{math.MaxInt, math.MaxInt, math.MaxInt}
	for n := range 10 { // a routine that another test makes has this session read its own anew, which counts
		owner := "a" + strconv.Itoa(n)
		counts := []int{count()}
		c.Hold(sqltest.Request("key", owner))
		counts = append(counts, count())
		if err := c.Renew("key", owner); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, count())
		c.Release("key", owner)
		counts = append(counts, count())
		for i := range least {
			least[i] = min(least[i], counts[i+1]-counts[i])
		}
	}
	for i, most := range []int{9, 5, 7} {
		if least[i] > most {
			t.Errorf("accesses to rows for a lock, a renewal and a release: got %d for step %d, want no more than %d", least[i], i, most)
		}
	}
}
