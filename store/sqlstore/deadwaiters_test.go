// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestDeadWaitersAreForgotten: also where a key is held for days, and clients come and go
// that wait for it.
func TestDeadWaitersAreForgotten(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d, WithoutNotifications())
		c := join(t, st)
		c.Hold(sqltest.Request("key", "a"))
		for i := range 10 {
			q := sqltest.Request("key", strconv.Itoa(i))
			q.WaiterTTL = time.Microsecond
			c.Acquire(q)
		}
		c.Acquire(sqltest.Request("key", "alive"))
		if got := d.Texts(t, "SELECT owner FROM "+st.settings.prefix+"waiter"); !slices.Equal(got, []string{"alive"}) {
			t.Errorf("waiters of a key that is held: got %q, want only the one that is alive", got)
		}
	})
}
