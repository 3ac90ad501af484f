// SPDX-License-Identifier: Apache-2.0

package sqltest

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

// RenewalWaitsForItsRow is a test: in the end. Where one request after the other locks a
// row, a renewal that only looks whether it is free may never find it so.
func (s Suite) RenewalWaitsForItsRow(t *testing.T) {
	s.on(t, func(t *testing.T, b Tables) {
		c := b.join(t)
		c.Hold(Request("key", "a"))
		c.Hold(Request("other", "b"))
		tx := b.LockRow(t, b.lock(), "key")
		ctx, cancel := context.WithTimeout(t.Context(), 2*Patience)
		defer cancel()
		renewed := make(chan error, 1)
		go func() { // ends when the row is free, or with ctx
			for {
				got := c.Session.Renew(ctx, []store.RenewRequest{{Key: "key", Owner: "a", TTL: Long}, {Key: "other", Owner: "b", TTL: Long}})
				if err := got[0].Err; err == nil || ctx.Err() != nil {
					renewed <- err
					return
				}
			}
		}()
		look := time.NewTicker(150 * time.Millisecond) // InnoDB shows what it knew, if asked more often
		defer look.Stop()
		for end := time.Now().Add(Patience); len(b.Texts(t, waitsForRow[b.Kind], b.Prefix)) == 0; <-look.C {
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
}

// TryLockOfAHeldKeyLocksNoRow is a test: nor waits for one, however many try.
func (s Suite) TryLockOfAHeldKeyLocksNoRow(t *testing.T) {
	s.on(t, func(t *testing.T, b Tables) {
		c := b.join(t)
		h := c.Hold(Request("key", "a"))
		b.LockRow(t, b.lock(), "key")
		q := Request("key", "b")
		q.Wait = false
		ctx, cancel := context.WithTimeout(t.Context(), Patience)
		defer cancel()
		got := c.Session.Acquire(ctx, []store.AcquireRequest{q})[0]
		if got.Err != nil || got.Status != store.Held || got.HolderToken != h.Token || got.Holder != "a at home" ||
			got.Remaining <= Long/2 || got.Remaining > Long {
			t.Errorf("Acquire without Wait of a held key whose row is locked: got %+v, want Held by a for about %v", got, Long)
		}
	})
}

// LockedRowDelaysNoOtherRenewal is a test: somebody's open transaction on one lock's row
// costs the others of a batch nothing.
func (s Suite) LockedRowDelaysNoOtherRenewal(t *testing.T) {
	s.on(t, func(t *testing.T, b Tables) {
		c := b.join(t)
		c.Hold(Request("a", "a"))
		c.Hold(Request("b", "b"))
		tx, err := b.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "UPDATE "+b.Prefix+b.lock()+" SET "+b.Touch+" = '2020-01-01' WHERE "+b.where("a")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), besideLockedRow)
		defer cancel()
		got := c.Session.Renew(ctx, []store.RenewRequest{{Key: "a", Owner: "a", TTL: Long}, {Key: "b", Owner: "b", TTL: Long}})
		if got[0].Err == nil || got[1].Err != nil {
			t.Errorf("Renew beside a locked row: got %v and %v, want an error and none", got[0].Err, got[1].Err)
		}
	})
}

// ForcePassesOverTokens is a test: the old holder may hand its key on until its TTL ends,
// with a token for each microsecond, and the next holder's is larger than all of these.
func (s Suite) ForcePassesOverTokens(t *testing.T) {
	s.on(t, func(t *testing.T, b Tables) {
		c := b.join(t)
		first := c.Hold(Request("key", "a"))
		if held, err := c.Session.Force(t.Context(), "key", 0); err != nil || !held {
			t.Fatalf("Force: got %v, %v, want true", held, err)
		}
		// long after it was granted, except for what the clients' clocks may be fast by
		last := first.Token + (Long - Long/100).Microseconds()
		if next := c.Hold(Request("key", "b")); next.Token <= last {
			t.Errorf("token after Force: got %d, want more than %d", next.Token, last)
		}
	})
}
