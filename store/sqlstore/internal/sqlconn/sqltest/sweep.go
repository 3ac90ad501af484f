// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// tablesDoNotGrow is a test: where each key is used once, more rows go than come.
func (s Suite) tablesDoNotGrow(t *testing.T) {
	const old, batch = 1000, 32
	s.on(t, func(t *testing.T, b Tables) {
		c := b.join(t)
		table := b.Prefix + b.KeyTables[len(b.KeyTables)-1]
		columns, values := b.Unused(b.Kind, "CONCAT('old', i)")
		numbers := map[string]string{
			sqlconn.KindPostgres: "generate_series(1, " + strconv.Itoa(old) + ") i",
			sqlconn.KindMySQL:    "(WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < " + strconv.Itoa(old) + ") SELECT i FROM n) n",
		}[b.Kind]
		b.Run(t, "INSERT INTO "+table+" ("+columns+") SELECT "+values+" FROM "+numbers)
		for round := range 20 { // of which twelve sweep, more or less
			var requests []store.AcquireRequest
			for i := range batch {
				requests = append(requests, Request(strconv.Itoa(round)+"/"+strconv.Itoa(i), "a"))
			}
			for _, got := range c.Session.Acquire(t.Context(), requests) {
				if got.Status != store.Granted {
					t.Fatalf("Acquire of a free key: got %+v, want Granted", got)
				}
			}
		}
		if got := b.Texts(t, "SELECT COUNT(*) FROM "+table+" WHERE LAST_USE = '2020-01-01'"); !slices.Equal(got, []string{"0"}) {
			t.Errorf("of %d unused keys after %d new ones: %s are left, want none", old, 20*batch, got)
		}
	})
}

// uncertainReleasesDoNotWaitForEachOther is a test: nor for others that clean up after
// them.
func (s Suite) uncertainReleasesDoNotWaitForEachOther(t *testing.T) {
	s.on(t, func(t *testing.T, b Tables) {
		c, table := b.join(t), b.Prefix+b.Gone
		for _, owner := range []string{"a", "b"} {
			c.Session.Release(t.Context(), []store.ReleaseRequest{{Key: owner, Owner: owner, Uncertain: true}})
		}
		b.Run(t, "UPDATE "+table+" SET "+b.GoneUntil+" = '2020-01-01'")
		tx, err := b.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "DELETE FROM "+table+" WHERE "+b.GoneOwner+" = '"+b.Owner("a")+"'"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), Patience)
		defer cancel()
		if got := c.Session.Release(ctx, []store.ReleaseRequest{{Key: "c", Owner: "c", Uncertain: true}})[0]; got.Err != nil {
			t.Errorf("Release beside another that cleans up: got %v, want no error", got.Err)
		}
		b.sweep(t)                                                    // which waits for nobody either
		if got := b.Texts(t, "SELECT 1 FROM "+table); len(got) != 2 { // a, of the open transaction, and c
			t.Errorf("withdrawn owners after the sweep: got %d, want 2", len(got))
		}
	})
}
