// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestHolderOfAFreeKey: a request without Wait for a free key that others wait for is not
// told who had it before.
func TestHolderOfAFreeKey(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d, WithoutNotifications())
		c := join(t, st)
		c.Hold(sqltest.Request("key", "a"))
		c.Acquire(sqltest.Request("key", "b"))
		d.Run(t, "UPDATE "+st.settings.prefix+"lock SET held_until = '2020-01-01'")
		q := sqltest.Request("key", "c")
		q.Wait = false
		got := c.Acquire(q)
		if got.Status != store.Held || got.Holder != "" || got.HolderToken != 0 || got.Remaining >= 0 || got.Waiters != 1 {
			t.Errorf("Acquire without Wait of a free key with a queue: got %+v, want Held by nobody known, behind 1", got)
		}
	})
}
