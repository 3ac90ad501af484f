// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// sweep does what one of many requests does besides.
func sweep(t *testing.T, d Database, st *Store) {
	t.Helper()
	call := map[string]string{"postgres": "SELECT ", "mysql": "CALL "}[d.name] + st.settings.prefix
	if st.settings.spring != nil {
		run(t, d, call+"LOCK_SWEEP('"+time.Now().UTC().Format(springTime)+"', 100)")
		return
	}
	run(t, d, call+"sweep(100)")
}

// TestTablesDoNotGrow: where each key is used once, more rows go than come.
func TestTablesDoNotGrow(t *testing.T) {
	t.Parallel()
	const old, batch = 1000, 32
	onEach(t, func(t *testing.T, d Database) {
		onTables(t, d, func(t *testing.T, st *Store, kind string) {
			c := join(t, st)
			const day = "CAST('2020-01-01' AS DATE)"
			table, columns := "lock", map[string]string{"postgres": "key", "mysql": "`key`"}[d.name]+", held_until, token, last_use"
			values := "CONCAT('old', i), " + day + ", 1, " + day
			if kind == "spring" {
				table, columns = "LOCK_LEASE", "LOCK_KEY, REGION, KEY_NAME, LAST_USE"
				values = "CONCAT('old', i), 'DEFAULT', 'old', " + day
			}
			numbers := map[string]string{
				"postgres": "generate_series(1, " + strconv.Itoa(old) + ") i",
				"mysql":    "(WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < " + strconv.Itoa(old) + ") SELECT i FROM n) n",
			}[d.name]
			run(t, d, "INSERT INTO "+st.settings.prefix+table+" ("+columns+") SELECT "+values+" FROM "+numbers)
			for round := range 20 { // of which twelve sweep, more or less
				var requests []store.AcquireRequest
				for i := range batch {
					requests = append(requests, request(strconv.Itoa(round)+"/"+strconv.Itoa(i), "a"))
				}
				for _, got := range c.session.Acquire(t.Context(), requests) {
					if got.Status != store.Granted {
						t.Fatalf("Acquire of a free key: got %+v, want Granted", got)
					}
				}
			}
			if got := texts(t, d, "SELECT COUNT(*) FROM "+st.settings.prefix+table+" WHERE LAST_USE = '2020-01-01'"); !slices.Equal(got, []string{"0"}) {
				t.Errorf("of %d unused keys after %d new ones: %s are left, want none", old, 20*batch, got)
			}
		})
	})
}

// TestUncertainReleasesDoNotWaitForEachOther: nor for anybody else who cleans up after them.
func TestUncertainReleasesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		onTables(t, d, func(t *testing.T, st *Store, kind string) {
			c := join(t, st)
			table, until := st.settings.prefix+"gone", "gone_until"
			if kind == "spring" {
				table, until = st.settings.prefix+"LOCK_GONE", "GONE_UNTIL"
			}
			for _, owner := range []string{"a", "b"} {
				c.session.Release(t.Context(), []store.ReleaseRequest{{Key: owner, Owner: owner, Uncertain: true}})
			}
			run(t, d, "UPDATE "+table+" SET "+until+" = '2020-01-01'")
			tx, err := d.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			column, owner := "owner", "a"
			if kind == "spring" {
				column, owner = "CLIENT_ID", clientID("a")
			}
			if _, err := tx.ExecContext(t.Context(), "DELETE FROM "+table+" WHERE "+column+" = '"+owner+"'"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if got := c.session.Release(ctx, []store.ReleaseRequest{{Key: "c", Owner: "c", Uncertain: true}})[0]; got.Err != nil {
				t.Errorf("Release beside another that cleans up: got %v, want no error", got.Err)
			}
			sweep(t, d, st)                                                // which waits for nobody either
			if got := texts(t, d, "SELECT 1 FROM "+table); len(got) != 2 { // a, of the open transaction, and c
				t.Errorf("withdrawn owners after the sweep: got %d, want 2", len(got))
			}
		})
	})
}

// TestSweptKeysOfJavasTableLeaveNoTokenAhead: what is ahead of the clock, after Force or as
// its holder wrote it back, is kept until it is not.
func TestSweptKeysOfJavasTableLeaveNoTokenAhead(t *testing.T) {
	t.Parallel()
	onGenerations(t, func(t *testing.T, st *Store, j java) {
		c := join(t, st)
		ahead := time.Now().Add(48 * time.Hour).UnixMicro()
		c.hold(request("released", "a"))
		c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "released", Owner: "a", Token: ahead}})
		run(t, j.d, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'")
		first := c.hold(request("forced", "b"))
		run(t, j.d, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'") // held for days
		if _, err := c.session.Force(t.Context(), "forced"); err != nil {
			t.Fatal(err)
		}
		if got := texts(t, j.d, "SELECT KEY_NAME FROM "+j.table+"_LEASE WHERE LAST_USE > '2020-01-01'"); !slices.Equal(got, []string{"forced"}) {
			t.Errorf("keys used lately, after Force: got %q, want that one", got)
		}
		run(t, j.d, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'")
		sweep(t, j.d, st)
		if got := c.hold(request("released", "c")); got.Token <= ahead {
			t.Errorf("token after a sweep: got %d, want more than %d", got.Token, ahead)
		}
		last := first.Token + (long - long/100).Microseconds() // which b may have used
		if got := c.hold(request("forced", "d")); got.Token <= last {
			t.Errorf("token after Force and a sweep: got %d, want more than %d", got.Token, last)
		}
	})
}

// TestHeldKeysOfJavasTableAreInUse: also if they are held for days.
func TestHeldKeysOfJavasTableAreInUse(t *testing.T) {
	t.Parallel()
	onGenerations(t, func(t *testing.T, st *Store, j java) {
		c := join(t, st)
		for name, use := range map[string]func(){
			"renew":   func() { _ = c.renew("renew", "a") },
			"release": func() { c.release("release", "a") },
		} {
			c.hold(request(name, "a"))
			run(t, j.d, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'")
			use()
			if got := texts(t, j.d, "SELECT KEY_NAME FROM "+j.table+"_LEASE WHERE LAST_USE > '2020-01-01'"); !slices.Equal(got, []string{name}) {
				t.Errorf("keys used lately, after a %s: got %q, want that one", name, got)
			}
		}
	})
}

// TestRowsKeptBackAreRemoved: nobody else would.
func TestRowsKeptBackAreRemoved(t *testing.T) {
	t.Parallel()
	onGenerations(t, func(t *testing.T, st *Store, j java) {
		c := join(t, st)
		for _, key := range []string{"old", "locked", "new"} {
			c.hold(request(key, "a"))
			c.session.Release(t.Context(), []store.ReleaseRequest{{Key: key, Owner: "a", HoldBack: time.Millisecond}})
		}
		j.insert("theirs", "DEFAULT", long)
		run(t, j.d, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'")
		run(t, j.d, "UPDATE "+j.table+" SET "+j.column+" = '"+j.stamp(-25*time.Hour)+"'")
		run(t, j.d, "UPDATE "+j.table+" SET "+j.column+" = '"+j.stamp(-23*time.Hour)+"' WHERE LOCK_KEY = '"+lockKey("new")+"'")
		lockRowOf(t, j.d, st, "LOCK", "locked")
		sweep(t, j.d, st)
		want := []string{lockKey("locked"), lockKey("new"), lockKey("theirs")}
		slices.Sort(want)
		got := texts(t, j.d, "SELECT LOCK_KEY FROM "+j.table+" ORDER BY LOCK_KEY")
		if !slices.Equal(got, want) {
			t.Errorf("rows after the sweep: got %q, want %q: that of Java, that of less than a day ago, and that which somebody has locked", got, want)
		}
	})
}
