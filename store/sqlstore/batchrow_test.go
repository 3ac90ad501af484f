// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// lockRowOf keeps a key's row of one of the store's tables locked until the transaction
// that it returns ends.
func lockRowOf(t *testing.T, d Database, st *Store, table, key string) *sql.Tx {
	t.Helper()
	tx, err := d.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	column, name := map[string]string{"postgres": "key", "mysql": "`key`"}[d.name], key
	if st.settings.spring != nil {
		column, name = "LOCK_KEY", lockKey(key)
	}
	var one int
	if err := tx.QueryRowContext(t.Context(), "SELECT 1 FROM "+st.settings.prefix+table+" WHERE "+column+" = '"+name+"' FOR UPDATE").Scan(&one); err != nil {
		t.Fatalf("row of %s in %s: %v", key, table, err)
	}
	return tx
}

// lockTable is the table that says who holds what.
func lockTable(st *Store) string {
	if st.settings.spring != nil {
		return "LOCK"
	}
	return "lock"
}

// besideLockedRow is how long a batch has, of which one request can't be carried out. The
// others take milliseconds. It is seconds for the sake of a busy machine.
const besideLockedRow = 5 * time.Second

// TestLockedRowHoldsUpNoBatch: somebody's open transaction on one key's row costs the
// other requests of a batch nothing, wherever it comes in their order.
func TestLockedRowHoldsUpNoBatch(t *testing.T) {
	t.Parallel()
	keys := []string{"a", "b", "c", "d"}
	onEach(t, func(t *testing.T, d Database) {
		for kind, tables := range map[string][]string{"native": {"lock"}, "spring": {"LOCK", "LOCK_LEASE"}} {
			t.Run(kind+"/acquire", func(t *testing.T) {
				t.Parallel()
				st := opens[kind](t, d)
				c := join(t, st)
				for _, key := range keys {
					c.hold(request(key, "before"))
					c.release(key, "before")
				}
				tx := lockRowOf(t, d, st, tables[len(tables)-1], "b")
				ctx, cancel := context.WithTimeout(t.Context(), besideLockedRow)
				defer cancel()
				var batch []store.AcquireRequest
				for _, key := range keys {
					batch = append(batch, request(key, "x"))
				}
				for i, got := range c.session.Acquire(ctx, batch) {
					if keys[i] == "b" {
						if got.Err == nil {
							t.Errorf("Acquire of the key whose row is locked: got %+v, want an error", got)
						}
					} else if got.Status != store.Granted {
						t.Errorf("Acquire of %s beside a locked row: got %+v, want Granted", keys[i], got)
					}
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				for _, key := range []string{"a", "c", "d", "b"} {
					c.hold(request(key, "x")) // once more, for b
					// The first request for b was given up, and may come through yet.
					q := store.ReleaseRequest{Key: key, Owner: "x", Uncertain: key == "b"}
					if got := c.session.Release(t.Context(), []store.ReleaseRequest{q})[0]; got.Err != nil || !got.WasHeld {
						t.Errorf("Release of %s: got %+v, want WasHeld", key, got)
					}
				}
			})
			for _, table := range tables {
				t.Run(kind+"/release/"+table, func(t *testing.T) {
					t.Parallel()
					st := opens[kind](t, d)
					c := join(t, st)
					var batch []store.ReleaseRequest
					for _, key := range keys {
						c.hold(request(key, "y"))
						batch = append(batch, store.ReleaseRequest{Key: key, Owner: "y"})
					}
					tx := lockRowOf(t, d, st, table, "b")
					ctx, cancel := context.WithTimeout(t.Context(), besideLockedRow)
					defer cancel()
					for i, got := range c.session.Release(ctx, batch) {
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
					c.release("b", "y")
				})
			}
		}
	})
}

// TestBusyRowsAreWaitedForAlone: the requests of a batch whose rows others have locked for
// a moment are carried out in the same call.
func TestBusyRowsAreWaitedForAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		onTables(t, d, func(t *testing.T, st *Store, _ string) {
			c := join(t, st)
			c.hold(request("a", "a"))
			tx := lockRowOf(t, d, st, lockTable(st), "a")
			done := make(chan store.ReleaseReply)
			go func() { // ends when the row is free, or at its deadline
				ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
				defer cancel()
				done <- c.session.Release(ctx, []store.ReleaseRequest{{Key: "a", Owner: "a"}, {Key: "b", Owner: "b"}})[0]
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
	})
}

// TestRowThatIsBeingMadeHoldsUpNoBatch: nor does the row of a new key that somebody has
// inserted and not committed yet, as a JVM that stands still between the two.
func TestRowThatIsBeingMadeHoldsUpNoBatch(t *testing.T) {
	t.Parallel()
	onEach(t, testRowThatIsBeingMade)
}

func testRowThatIsBeingMade(t *testing.T, d Database) {
	t.Helper()
	rows := map[string]string{
		"lock": "(" + map[string]string{"postgres": "key", "mysql": "`key`"}[d.name] + ", held_until, token, last_use) VALUES ('b', '2020-01-01', 0, '2020-01-01')",
		"LOCK": "(LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ('" + lockKey("b") + "', 'DEFAULT', '" +
			clientID("java") + "', '2020-01-01', '2100-01-01')",
		"LOCK_LEASE": "(LOCK_KEY, REGION, KEY_NAME, LAST_USE) VALUES ('" + lockKey("b") + "', 'DEFAULT', 'b', '2020-01-01')",
	}
	for kind, tables := range map[string][]string{"native": {"lock"}, "spring": {"LOCK", "LOCK_LEASE"}} {
		for _, table := range tables {
			t.Run(kind+"/acquire/"+table, func(t *testing.T) {
				t.Parallel()
				testRowOf(t, d, opens[kind](t, d), table, rows[table])
			})
		}
	}
}

// testRowOf: while a transaction makes the row of b in a table, the other keys are granted.
func testRowOf(t *testing.T, d Database, st *Store, table, row string) {
	t.Helper()
	c, keys := join(t, st), []string{"a", "b", "c", "d"}
	if table == "LOCK" { // then no row of ours has to be made before it
		for _, key := range keys {
			c.hold(request(key, "before"))
			c.release(key, "before")
		}
	}
	tx := begin(t, d)
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO "+st.settings.prefix+table+" "+row); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), besideLockedRow)
	defer cancel()
	var batch []store.AcquireRequest
	for _, key := range keys {
		batch = append(batch, request(key, "x"))
	}
	for i, got := range c.session.Acquire(ctx, batch) {
		if keys[i] == "b" {
			if got.Err == nil {
				t.Errorf("Acquire of the key whose row is being made: got %+v, want an error", got)
			}
		} else if got.Status != store.Granted {
			t.Errorf("Acquire of %s beside a row that is being made: got %+v, want Granted", keys[i], got)
		} else if info, err := c.session.Inspect(t.Context(), keys[i]); err != nil || !info.Held {
			t.Errorf("Inspect of %s, which was granted: got %+v, %v, want it held", keys[i], info, err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "c", "d", "b"} {
		c.hold(request(key, "x")) // once more, for b
		// The first request for b was given up, and may come through yet.
		q := store.ReleaseRequest{Key: key, Owner: "x", Uncertain: key == "b"}
		if got := c.session.Release(t.Context(), []store.ReleaseRequest{q})[0]; got.Err != nil || !got.WasHeld {
			t.Errorf("Release of %s: got %+v, want WasHeld", key, got)
		}
	}
}
