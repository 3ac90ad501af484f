// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestTakenTicket: a waiter that comes back to a place that another has gets a new one.
func TestTakenTicket(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		c := join(t, newTables(t, d))
		c.Hold(sqltest.Request("key", "a"))
		first := c.Acquire(sqltest.Request("key", "b"))
		q := sqltest.Request("key", "c")
		q.Ticket = first.Ticket
		got := c.Session.Acquire(t.Context(), []store.AcquireRequest{sqltest.Request("other", "d"), q})
		if got[0].Status != store.Granted {
			t.Errorf("Acquire of a free key: got %+v, want Granted", got[0])
		}
		if got := got[1]; got.Err != nil || got.Status != store.Waiting || got.Ticket <= first.Ticket || got.Rank != 1 {
			t.Errorf("Acquire with the ticket of another: got %+v, want Waiting behind it, with a ticket above %d", got, first.Ticket)
		}
	})
}
