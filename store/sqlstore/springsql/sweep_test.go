// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestSweptKeysOfJavasTableLeaveNoTokenAhead: what is ahead of the clock, after Force or as
// its holder wrote it back, is kept until it is not.
func TestSweptKeysOfJavasTableLeaveNoTokenAhead(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, st *Store, j java) {
		c := sqltest.Join(t, st)
		ahead := time.Now().Add(48 * time.Hour).UnixMicro()
		c.Hold(sqltest.Request("released", "a"))
		c.Session.Release(t.Context(), []store.ReleaseRequest{{Key: "released", Owner: "a", Token: ahead}})
		j.d.Run(t, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'")
		first := c.Hold(sqltest.Request("forced", "b"))
		j.d.Run(t, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'") // held for days
		if _, err := c.Session.Force(t.Context(), "forced", 0); err != nil {
			t.Fatal(err)
		}
		if got := j.d.Texts(t, "SELECT KEY_NAME FROM "+j.table+"_LEASE WHERE LAST_USE > '2020-01-01'"); !slices.Equal(got, []string{"forced"}) {
			t.Errorf("keys used lately, after Force: got %q, want that one", got)
		}
		j.d.Run(t, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'")
		j.sweep()
		if got := c.Hold(sqltest.Request("released", "c")); got.Token <= ahead {
			t.Errorf("token after a sweep: got %d, want more than %d", got.Token, ahead)
		}
		last := first.Token + (sqltest.Long - sqltest.Long/100).Microseconds() // which b may have used
		if got := c.Hold(sqltest.Request("forced", "d")); got.Token <= last {
			t.Errorf("token after Force and a sweep: got %d, want more than %d", got.Token, last)
		}
	})
}

// TestHeldKeysOfJavasTableAreInUse: also if they are held for days.
func TestHeldKeysOfJavasTableAreInUse(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, st *Store, j java) {
		c := sqltest.Join(t, st)
		for name, use := range map[string]func(){
			"renew":   func() { _ = c.Renew("renew", "a") },
			"release": func() { c.Release("release", "a") },
		} {
			c.Hold(sqltest.Request(name, "a"))
			j.d.Run(t, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'")
			use()
			if got := j.d.Texts(t, "SELECT KEY_NAME FROM "+j.table+"_LEASE WHERE LAST_USE > '2020-01-01'"); !slices.Equal(got, []string{name}) {
				t.Errorf("keys used lately, after a %s: got %q, want that one", name, got)
			}
		}
	})
}

// TestRowsKeptBackAreRemoved: nobody else would.
func TestRowsKeptBackAreRemoved(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, st *Store, j java) {
		c := sqltest.Join(t, st)
		for _, key := range []string{"old", "locked", "new"} {
			c.Hold(sqltest.Request(key, "a"))
			c.Session.Release(t.Context(), []store.ReleaseRequest{{Key: key, Owner: "a", HoldBack: time.Millisecond}})
		}
		j.insert("theirs", "DEFAULT", sqltest.Long)
		j.d.Run(t, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'")
		j.d.Run(t, "UPDATE "+j.table+" SET "+j.column+" = '"+j.stamp(-25*time.Hour)+"'")
		j.d.Run(t, "UPDATE "+j.table+" SET "+j.column+" = '"+j.stamp(-23*time.Hour)+"' WHERE LOCK_KEY = '"+lockKey("new")+"'")
		sqltest.Tables{Suite: suite, Database: j.d, Prefix: st.settings.prefix, Store: st}.LockRow(t, "LOCK", "locked")
		j.sweep()
		want := []string{lockKey("locked"), lockKey("new"), lockKey("theirs")}
		slices.Sort(want)
		got := j.d.Texts(t, "SELECT LOCK_KEY FROM "+j.table+" ORDER BY LOCK_KEY")
		if !slices.Equal(got, want) {
			t.Errorf("rows after the sweep: got %q, want %q: that of Java, that of less than a day ago, and that which somebody has locked", got, want)
		}
	})
}
