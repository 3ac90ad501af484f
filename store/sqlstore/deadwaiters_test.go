// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/sqlconn/sqltest"
	"github.com/asynclock/asynclock-go/store"
)

// TestDeadWaitersAreForgotten: also where a key is held for days, and clients come and go
// that wait for it. The place of one that comes back is kept.
func TestDeadWaitersAreForgotten(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d, WithoutNotifications())
		c := join(t, st)
		c.Hold(sqltest.Request("key", "a"))
		late := sqltest.Request("key", "late")
		late.WaiterTTL = time.Microsecond
		late.Ticket = c.Acquire(late).Ticket
		for i := range 10 {
			q := sqltest.Request("key", strconv.Itoa(i))
			q.WaiterTTL = time.Microsecond
			c.Acquire(q)
		}
		c.Acquire(sqltest.Request("key", "alive"))
		if got := d.Texts(t, "SELECT owner FROM "+st.settings.prefix+"waiter"); !slices.Equal(got, []string{"alive"}) {
			t.Errorf("waiters of a key that is held: got %q, want only the one that is alive", got)
		}
		late.WaiterTTL = sqltest.Long
		if got := c.Acquire(late); got.Status != store.Waiting || got.Rank != 0 || got.Ticket != late.Ticket {
			t.Errorf("Acquire of one that was dropped and comes back: got %+v, want Waiting ahead of all, by ticket %d", got, late.Ticket)
		}
	})
}
