// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// TestMissingFloorIsSaid: a copy of the schema alone leaves the row out that new keys' tokens
// begin with. That is said when the store is opened, and to who is in the middle of it; and
// a migration mends it.
func TestMissingFloorIsSaid(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		st := newTables(t, d, WithPolling())
		c := join(t, st)
		c.hold(request("old", "a"))
		run(t, d, "DELETE FROM "+st.settings.prefix+"floor WHERE token >= 0")
		var schema *SchemaError
		if _, err := New(t.Context(), d, WithPrefix(st.settings.prefix)); !errors.As(err, &schema) || schema.Table != st.settings.prefix+"floor" {
			t.Errorf("New without the floor's row: got %v, want a SchemaError of that table", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience/6)
		defer cancel()
		got := c.session.Acquire(ctx, []store.AcquireRequest{request("new", "a")})[0]
		if !errors.As(got.Err, &schema) {
			t.Errorf("Acquire of a new key without the floor's row: got %+v, want a SchemaError", got)
		}
		if err := c.renew("old", "a"); err != nil {
			t.Errorf("Renew without the floor's row: got %v, want no error", err)
		}
		if err := Migrate(t.Context(), d, WithPrefix(st.settings.prefix)); err != nil {
			t.Fatal(err)
		}
		newStore(t, d, WithPrefix(st.settings.prefix))
		c.hold(request("new", "a"))
	})
}
