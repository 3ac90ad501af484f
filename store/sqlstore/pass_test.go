// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// TestExpiredHolderThatWaitedInVainHoldsNothing: its id is in the key's row still. It joined
// the queue and was dropped from it in the step in which the key would have been its.
func TestExpiredHolderThatWaitedInVainHoldsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		st := newTables(t, d)
		c := join(t, st)
		c.hold(request("key", "a"))
		c.acquire(request("key", "b"))
		run(t, d, "UPDATE "+st.settings.prefix+"waiter SET owner = 'a'") // as if a had queued behind itself
		run(t, d, "UPDATE "+st.settings.prefix+"lock SET held_until = '2020-01-01'")
		q := request("key", "a")
		q.WaiterTTL = time.Microsecond // by the time that the queue is looked at it is dead
		if got := c.acquire(q); got.Status == store.Granted {
			t.Errorf("Acquire: got %+v, want no grant, for nobody holds the key", got)
		}
		if got, err := c.session.Inspect(t.Context(), "key"); err != nil || got.Held {
			t.Errorf("Inspect: got %+v, %v, want it free", got, err)
		}
		c.hold(request("key", "c"))
	})
}
