// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestExpiredHolderThatWaitedInVainHoldsNothing: its id is in the key's row still. It joined
// the queue and was dropped from it in the step in which the key would have been its.
func TestExpiredHolderThatWaitedInVainHoldsNothing(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c := join(t, st)
		c.Hold(sqltest.Request("key", "a"))
		c.Acquire(sqltest.Request("key", "b"))
		d.Run(t, "UPDATE "+st.settings.prefix+"waiter SET owner = 'a'") // as if a had queued behind itself
		d.Run(t, "UPDATE "+st.settings.prefix+"lock SET held_until = '2020-01-01'")
		q := sqltest.Request("key", "a")
		q.WaiterTTL = time.Microsecond // by the time that the queue is looked at it is dead
		if got := c.Acquire(q); got.Status == store.Granted {
			t.Errorf("Acquire: got %+v, want no grant, for nobody holds the key", got)
		}
		if got, err := c.Session.Inspect(t.Context(), "key"); err != nil || got.Held {
			t.Errorf("Inspect: got %+v, %v, want it free", got, err)
		}
		c.Hold(sqltest.Request("key", "c"))
	})
}
