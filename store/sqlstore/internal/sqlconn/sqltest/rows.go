// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// besideLockedRow is how long a batch has, of which one request can't be carried out. The
// others take milliseconds. It is seconds for the sake of a busy machine.
const besideLockedRow = 5 * time.Second

// batchSkipsLockedRows is a test: it says which of its rows another transaction has locked, and does the
// rest in the same call.
func (s Suite) batchSkipsLockedRows(t *testing.T) {
	s.on(t, func(t *testing.T, b Tables) {
		c, micros := b.join(t), Long.Microseconds()
		var items []sqlconn.Item
		for _, key := range []string{"a", "b", "c"} {
			c.Hold(Request(key, "x"))
			items = append(items, sqlconn.Item{
				Key: b.Key(key), Name: key, Owner: b.Owner("x"), TTL: micros, Grant: micros, Alive: micros, Wait: true,
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), Patience)
		defer cancel()
		for _, routine := range []string{"ACQUIRE", "RENEW", "RELEASE"} {
			for i, table := range b.KeyTables {
				if routine == "RENEW" && i > 0 {
					continue // it needs the first only
				}
				tx := b.LockRow(t, table, "b")
				answers, err := s.Call(ctx, b.Store, routine, items...)
				if err != nil || len(answers) != len(items) {
					t.Fatalf("%s beside a locked row of %s: got %+v, %v, want %d answers", routine, table, answers, err, len(items))
				}
				for i, got := range answers {
					if locked := i == 1; (got.Status == sqlconn.StatusLocked) != locked {
						t.Errorf("%s of %s beside a locked row of %s: got %+v, want locked: %v", routine, items[i].Name, table, got, locked)
					}
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// lockedRowHoldsUpNoBatch is a test: somebody's open transaction on one key's row costs the
// other requests of a batch nothing, wherever it comes in their order.
func (s Suite) lockedRowHoldsUpNoBatch(t *testing.T) {
	OnEach(t, func(t *testing.T, d Database) {
		t.Run("acquire", func(t *testing.T) {
			t.Parallel()
			testAcquireBesideLockedRow(t, s.NewTables(t, d))
		})
		for _, table := range s.KeyTables {
			t.Run("release/"+table, func(t *testing.T) {
				t.Parallel()
				testReleaseBesideLockedRow(t, s.NewTables(t, d), table)
			})
		}
	})
}

// testAcquireBesideLockedRow: the other keys of a batch are granted.
func testAcquireBesideLockedRow(t *testing.T, b Tables) {
	t.Helper()
	c, keys := b.join(t), []string{"a", "b", "c", "d"}
	for _, key := range keys {
		c.Hold(Request(key, "before"))
		c.Release(key, "before")
	}
	tx := b.LockRow(t, b.KeyTables[len(b.KeyTables)-1], "b")
	c.acquireBeside(keys, "whose row is locked", func(string) {})
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	c.releaseBeside()
}

// acquireBeside acquires all keys at once, of which the row of "b" can't be had.
func (c *Client) acquireBeside(keys []string, why string, granted func(key string)) {
	t := c.T
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), besideLockedRow)
	defer cancel()
	var batch []store.AcquireRequest
	for _, key := range keys {
		batch = append(batch, Request(key, "x"))
	}
	for i, got := range c.Session.Acquire(ctx, batch) {
		switch {
		case keys[i] == "b" && got.Err == nil:
			t.Errorf("Acquire of the key %s: got %+v, want an error", why, got)
		case keys[i] == "b":
		case got.Status != store.Granted:
			t.Errorf("Acquire of %s beside a key %s: got %+v, want Granted", keys[i], why, got)
		default:
			granted(keys[i])
		}
	}
}

// releaseBeside releases all keys, once the row of "b" can be had.
func (c *Client) releaseBeside() {
	t := c.T
	t.Helper()
	for _, key := range []string{"a", "c", "d", "b"} {
		c.Hold(Request(key, "x")) // once more, for b
		// The first request for b was given up, and may come through yet.
		q := store.ReleaseRequest{Key: key, Owner: "x", Uncertain: key == "b"}
		if got := c.Session.Release(t.Context(), []store.ReleaseRequest{q})[0]; got.Err != nil || !got.WasHeld {
			t.Errorf("Release of %s: got %+v, want WasHeld", key, got)
		}
	}
}

// testReleaseBesideLockedRow: the other keys of a batch are released.
func testReleaseBesideLockedRow(t *testing.T, b Tables, table string) {
	t.Helper()
	c, keys := b.join(t), []string{"a", "b", "c", "d"}
	var batch []store.ReleaseRequest
	for _, key := range keys {
		c.Hold(Request(key, "y"))
		batch = append(batch, store.ReleaseRequest{Key: key, Owner: "y"})
	}
	tx := b.LockRow(t, table, "b")
	ctx, cancel := context.WithTimeout(t.Context(), besideLockedRow)
	defer cancel()
	for i, got := range c.Session.Release(ctx, batch) {
		if keys[i] == "b" {
			if got.Err == nil {
				t.Errorf("Release of the key whose row is locked: got %+v, want an error", got)
			}
		} else if got.Err != nil || !got.WasHeld {
			t.Errorf("Release of %s beside a locked row: got %+v, want WasHeld", keys[i], got)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	c.Release("b", "y")
}

// busyRowsAreWaitedForAlone is a test: the requests of a batch whose rows others have
// locked for a moment are carried out in the same call.
func (s Suite) busyRowsAreWaitedForAlone(t *testing.T) {
	s.on(t, func(t *testing.T, b Tables) {
		c := b.join(t)
		c.Hold(Request("a", "a"))
		tx := b.LockRow(t, b.lock(), "a")
		done := make(chan store.ReleaseReply)
		go func() { // ends when the row is free, or at its deadline
			ctx, cancel := context.WithTimeout(t.Context(), 2*Patience)
			defer cancel()
			done <- c.Session.Release(ctx, []store.ReleaseRequest{{Key: "a", Owner: "a"}, {Key: "b", Owner: "b"}})[0]
		}()
		select {
		case got := <-done:
			t.Errorf("Release of a key whose row is locked: got %+v, want it to wait", got)
			return
		case <-time.After(200 * time.Millisecond):
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got.Err != nil || !got.WasHeld {
			t.Errorf("Release once the row is free: got %+v, want WasHeld", got)
		}
	})
}

// rowThatIsBeingMadeHoldsUpNoBatch is a test: nor does the row of a new key that somebody
// has inserted and not committed yet, as a JVM that stands still between the two.
func (s Suite) rowThatIsBeingMadeHoldsUpNoBatch(t *testing.T) { OnEach(t, s.rowThatIsBeingMade) }

func (s Suite) rowThatIsBeingMade(t *testing.T, d Database) {
	for _, table := range s.KeyTables {
		t.Run("acquire/"+table, func(t *testing.T) {
			t.Parallel()
			testRowOf(t, s.NewTables(t, d), table)
		})
	}
}

// testRowOf: while a transaction makes the row of b in a table, the other keys are granted.
func testRowOf(t *testing.T, b Tables, table string) {
	t.Helper()
	c, keys := b.join(t), []string{"a", "b", "c", "d"}
	if table != b.KeyTables[len(b.KeyTables)-1] { // then no row of ours has to be made before it
		for _, key := range keys {
			c.Hold(Request(key, "before"))
			c.Release(key, "before")
		}
	}
	tx := b.Begin(t)
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO "+b.Prefix+table+" "+b.Making(b.Kind, table)); err != nil {
		t.Fatal(err)
	}
	c.acquireBeside(keys, "whose row is being made", func(key string) {
		if info, err := c.Session.Inspect(t.Context(), key); err != nil || !info.Held {
			t.Errorf("Inspect of %s, which was granted: got %+v, %v, want it held", key, info, err)
		}
	})
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	c.releaseBeside()
}
