// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestMissingFloorIsSaid: a copy of the schema alone leaves the row out that new keys' tokens
// begin with. New says so, and so does a request of a store that is open. A migration mends
// it.
func TestMissingFloorIsSaid(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d, WithoutNotifications())
		c := join(t, st)
		c.Hold(sqltest.Request("old", "a"))
		d.Run(t, "DELETE FROM "+st.settings.prefix+"floor WHERE token >= 0")
		var schema *SchemaError
		if _, err := New(t.Context(), d.Database, WithPrefix(st.settings.prefix)); !errors.As(err, &schema) || schema.Table != st.settings.prefix+"floor" {
			t.Errorf("New without the floor's row: got %v, want a SchemaError of that table", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), sqltest.Patience/6)
		defer cancel()
		got := c.Session.Acquire(ctx, []store.AcquireRequest{sqltest.Request("new", "a")})[0]
		if !errors.As(got.Err, &schema) {
			t.Errorf("Acquire of a new key without the floor's row: got %+v, want a SchemaError", got)
		}
		if err := c.Renew("old", "a"); err != nil {
			t.Errorf("Renew without the floor's row: got %v, want no error", err)
		}
		if err := Migrate(t.Context(), d.Database, WithPrefix(st.settings.prefix)); err != nil {
			t.Fatal(err)
		}
		newStore(t, d, WithPrefix(st.settings.prefix))
		c.Hold(sqltest.Request("new", "a"))
	})
}
