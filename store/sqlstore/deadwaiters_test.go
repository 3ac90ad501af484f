// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// TestDeadWaitersAreForgotten: also where a key is held for days, and clients come and go
// that wait for it. The place of one that comes back is kept.
func TestDeadWaitersAreForgotten(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		st := newTables(t, d, WithPolling())
		c := join(t, st)
		c.hold(request("key", "a"))
		late := request("key", "late")
		late.WaiterTTL = time.Microsecond
		late.Ticket = c.acquire(late).Ticket
		for i := range 10 {
			q := request("key", strconv.Itoa(i))
			q.WaiterTTL = time.Microsecond
			c.acquire(q)
		}
		c.acquire(request("key", "alive"))
		if got := texts(t, d, "SELECT owner FROM "+st.settings.prefix+"waiter"); !slices.Equal(got, []string{"alive"}) {
			t.Errorf("waiters of a key that is held: got %q, want only the one that is alive", got)
		}
		late.WaiterTTL = long
		if got := c.acquire(late); got.Status != store.Waiting || got.Rank != 0 || got.Ticket != late.Ticket {
			t.Errorf("Acquire of one that was dropped and comes back: got %+v, want Waiting ahead of all, by ticket %d", got, late.Ticket)
		}
	})
}
