// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// waitsForRow says whether somebody waits for a row in PostgreSQL, in a statement with our routines' prefix.
const waitsForRow = "SELECT query FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND strpos(query, $1) > 0"

// renewalWaitsForItsRow is a test: for a moment, in the server. Where one request after the other locks a
// row, a renewal that only looks whether it is free may never find it so.
func (s Suite) renewalWaitsForItsRow(t *testing.T) {
	s.on(t, func(t *testing.T, b Tables) {
		b.join(t).Hold(Request("key", "a"))
		tx := b.LockRow(t, b.lock(), "key")
		ctx, cancel := context.WithTimeout(t.Context(), 2*Patience)
		defer cancel()
		renewed, waits := make(chan error, 1), make(chan struct{})
		go func() { // ends when the row is free, or with ctx
			it := sqlconn.Item{Key: b.Key("key"), Owner: b.Owner("a"), TTL: Long.Microseconds(), InLine: Long.Microseconds()}
			_, err := s.Call(ctx, b.Store, "RENEW", it)
			for b.Kind == sqlconn.KindPostgres && err != nil && ctx.Err() == nil { // it takes no such time from the item
				_, err = s.Call(ctx, b.Store, "RENEW", it)
			}
			renewed <- err
		}()
		go func() { // ends when it has seen that, or with ctx
			defer close(waits)
			for b.Kind == sqlconn.KindPostgres && ctx.Err() == nil && len(b.Texts(t, waitsForRow, b.Prefix)) == 0 {
				time.Sleep(time.Millisecond)
			}
		}()
		<-waits
		select {
		case err := <-renewed:
			t.Fatalf("Renew of a key whose row is locked: got %v, want it to wait", err)
		case <-time.After(200 * time.Millisecond):
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-renewed; err != nil {
			t.Errorf("Renew of a key whose row was locked: got %v, want no error", err)
		}
	})
}

// tryLockOfAHeldKeyLocksNoRow is a test: nor waits for one, however many try.
func (s Suite) tryLockOfAHeldKeyLocksNoRow(t *testing.T) {
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

// forcePassesOverTokens is a test: the old holder may hand its key on until its TTL ends,
// with a token for each microsecond, and the next holder's is larger than all of these.
func (s Suite) forcePassesOverTokens(t *testing.T) {
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
