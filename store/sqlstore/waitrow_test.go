// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// waitsForRow are statements that say whether somebody waits for a row, in a statement
// with our routines' prefix.
var waitsForRow = map[string]string{
	"postgres": "SELECT query FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND strpos(query, $1) > 0",
	"mysql":    "SELECT trx_query FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND LOCATE(?, trx_query) > 0",
}

// TestRenewalWaitsForItsRow: in the end. Where one request after the other locks a row, a
// renewal that only looks whether it is free may never find it so.
func TestRenewalWaitsForItsRow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		onTables(t, d, func(t *testing.T, st *Store, kind string) {
			c := join(t, st)
			c.hold(request("key", "a"))
			c.hold(request("other", "b"))
			tx := lockRowOf(t, d, st, lockTable(st), "key")
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			renewed := make(chan error, 1)
			go func() { // ends when the row is free, or with ctx
				for {
					got := c.session.Renew(ctx, []store.RenewRequest{{Key: "key", Owner: "a", TTL: long}, {Key: "other", Owner: "b", TTL: long}})
					if err := got[0].Err; err == nil || ctx.Err() != nil {
						renewed <- err
						return
					}
				}
			}()
			look := time.NewTicker(150 * time.Millisecond) // InnoDB shows what it knew, if asked more often
			defer look.Stop()
			for end := time.Now().Add(patience); len(texts(t, d, waitsForRow[d.name], st.settings.prefix)) == 0; <-look.C {
				if time.Now().After(end) {
					t.Fatal("Renew of a key whose row is locked never waits for it")
				}
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if err := <-renewed; err != nil {
				t.Errorf("Renew of a key whose row was locked: got %v, want no error", err)
			}
		})
	})
}

// TestTryLockOfAHeldKeyLocksNoRow: nor waits for one, however many try.
func TestTryLockOfAHeldKeyLocksNoRow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		onTables(t, d, func(t *testing.T, st *Store, _ string) {
			c := join(t, st)
			h := c.hold(request("key", "a"))
			lockRowOf(t, d, st, lockTable(st), "key")
			q := request("key", "b")
			q.Wait = false
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			got := c.session.Acquire(ctx, []store.AcquireRequest{q})[0]
			if got.Err != nil || got.Status != store.Held || got.HolderToken != h.Token || got.Holder != "a at home" ||
				got.Remaining <= long/2 || got.Remaining > long {
				t.Errorf("Acquire without Wait of a held key whose row is locked: got %+v, want Held by a for about %v", got, long)
			}
		})
	})
}
