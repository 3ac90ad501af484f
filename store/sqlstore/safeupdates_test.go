// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// TestSafeUpdates: sql_safe_updates, which some set for all connections, refuses what writes
// to a table without naming rows by a key.
func TestSafeUpdates(t *testing.T) {
	t.Parallel()
	d := onMySQLWith(t, "sql_safe_updates", "1")
	inTurn(t, d, func(t *testing.T, st *Store) {
		table, columns, old := "lock", "`key`, held_until, token, last_use", "'old', '2020-01-01', 1, '2020-01-01'"
		if st.settings.spring != nil {
			table, columns, old = "LOCK_LEASE", "LOCK_KEY, REGION, KEY_NAME, LAST_USE", "'old', 'DEFAULT', 'old', '2020-01-01'"
		}
		table = st.settings.prefix + table
		run(t, d, "INSERT INTO "+table+" ("+columns+") VALUES ("+old+")")
		c := join(t, st)
		c.hold(request("key", "a"))
		c.acquire(request("key", "b"))
		if err := c.renew("key", "a"); err != nil {
			t.Errorf("Renew: got %v, want no error", err)
		}
		for _, q := range []store.ReleaseRequest{
			{Key: "key", Owner: "b", Uncertain: true},
			{Key: "key", Owner: "a", HoldBack: time.Millisecond},
		} {
			if got := c.session.Release(t.Context(), []store.ReleaseRequest{q})[0]; got.Err != nil {
				t.Errorf("Release: got %v, want no error", got.Err)
			}
		}
		c.hold(request("other", "a"))
		if _, err := c.session.Force(t.Context(), "other"); err != nil {
			t.Errorf("Force: got %v, want no error", err)
		}
		if err := st.Guard(t.Context(), begin(t, onMySQLWith(t, "sql_safe_updates", "1")), "key", 5); err != nil {
			t.Errorf("Guard: got %v, want no error", err)
		}
		sweep(t, d, st)
		if got := texts(t, d, "SELECT 1 FROM "+table+" WHERE LAST_USE = '2020-01-01'"); len(got) > 0 {
			t.Errorf("keys that nobody has used for years, after a sweep: got %d, want none", len(got))
		}
	})
}
