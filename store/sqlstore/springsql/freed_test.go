// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestHeldIsSaidOfAHeldKey: a routine looks twice at Java's table, and a key that it finds
// held first may be free then. Nobody is told that it is held by nobody.
func TestHeldIsSaidOfAHeldKey(t *testing.T) {
	t.Parallel()
	for freed := range freedTries + 1 {
		left := freed
		d := sqltest.Answering(t, func(string, []sqlconn.Item) ([]sqlconn.Answer, error) {
			if left--; left >= 0 {
				return []sqlconn.Answer{{Status: sqlconn.StatusHeld}}, nil
			}
			return []sqlconn.Answer{{Status: sqlconn.StatusGranted, Token: 7}}, nil
		})
		c := sqltest.Join(t, unlooked(t, d))
		for _, wait := range []bool{false, true} {
			left = freed
			q := sqltest.Request("key", "a")
			q.Wait = wait
			got := c.Acquire(q)
			want := store.Granted
			if freed == freedTries {
				want = map[bool]store.AcquireStatus{false: store.Held, true: store.Waiting}[wait]
			}
			if got.Status != want || got.Remaining > 0 {
				t.Errorf("a key that is freed %d times, wait %v: got %+v, want status %d", freed, wait, got, want)
			}
			if wait && want == store.Waiting && got.Recheck <= 0 {
				t.Errorf("a key that is freed %d times: got %+v, want a Recheck", freed, got)
			}
		}
	}
}

// unlooked opens a store of 7.x that has looked at no table.
func unlooked(t testing.TB, d Database) *Store {
	t.Helper()
	st, err := open(d, []Option{WithSpringVersion(Spring7)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}
