// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"slices"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// permits is sqltest.Request for permits.
func permits(key, owner string, weight, limit int32) store.AcquireRequest {
	q := sqltest.Request(key, owner)
	q.Share = store.Share{Mode: store.Permits, Weight: weight, Limit: limit}
	return q
}

func setLimit(t *testing.T, session store.Session, key string, limit int32) {
	t.Helper()
	if err := session.(store.LimitSession).SetLimit(t.Context(), key, limit); err != nil {
		t.Fatalf("SetLimit: got %v, want no error", err)
	}
}

// waiters is how many wait for a key.
func waiters(t *testing.T, session store.Session, key string) int {
	t.Helper()
	info, err := session.Inspect(t.Context(), key)
	if err != nil {
		t.Fatalf("Inspect: got %v, want no error", err)
	}
	return info.Waiters
}

// TestLimitServesInItsTransaction: nobody has to ask for that.
func TestLimitServesInItsTransaction(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		c := join(t, newTables(t, d))
		setLimit(t, c.Session, "key", 1)
		c.Hold(permits("key", "a", 1, 5))
		c.Acquire(permits("key", "b", 1, 5))
		setLimit(t, c.Session, "key", 2)
		if got := waiters(t, c.Session, "key"); got != 0 {
			t.Errorf("waiters after the limit was raised: got %d, want none", got)
		}
	})
}

// TestRefusedWaiterServesThoseBehind: a waiter may change its weight while it waits. If the new one is
// above the limit, it blocks nobody any more.
func TestRefusedWaiterServesThoseBehind(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		c := join(t, newTables(t, d))
		setLimit(t, c.Session, "key", 3)
		c.Hold(permits("key", "a", 2, 5))
		c.Acquire(permits("key", "first", 2, 5))
		c.Acquire(permits("key", "second", 1, 5))
		if got := c.Acquire(permits("key", "first", 4, 5)); got.Status != store.TooMuch || got.Limit != 3 {
			t.Errorf("Acquire of 4 permits of 3: got %+v, want TooMuch and a limit of 3", got)
		}
		if got := waiters(t, c.Session, "key"); got != 0 {
			t.Errorf("waiters behind one that was refused: got %d, want none", got)
		}
	})
}

// TestNoSweepDeletesALimit: although the key's row goes, a day after its last use.
func TestNoSweepDeletesALimit(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c, prefix := join(t, st), st.settings.prefix
		setLimit(t, c.Session, "key", 1)
		d.Run(t, "UPDATE "+prefix+"lock SET last_use = '2020-01-01'")
		d.RunRoutine(t, prefix+"sweep(100)")
		if got := d.Texts(t, "SELECT owner FROM "+prefix+"lock"); len(got) != 0 {
			t.Errorf("rows of keys after the sweep: got %q, want none", got)
		}
		info, err := c.Session.Inspect(t.Context(), "key")
		if err != nil || info.StoredLimit != 1 || info.Held {
			t.Errorf("Inspect after the sweep: got %+v, %v, want a stored limit of 1", info, err)
		}
		c.Hold(permits("key", "a", 1, 5))
		if got := c.Acquire(permits("key", "b", 1, 5)); got.Status != store.Waiting {
			t.Errorf("Acquire of a second permit of one: got %+v, want Waiting", got)
		}
		setLimit(t, c.Session, "key", 0)
		if got := d.Texts(t, "SELECT permits FROM "+prefix+"permits"); !slices.Equal(got, nil) {
			t.Errorf("rows of limits after it was forgotten: got %q, want none", got)
		}
	})
}
