// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestGuardKnowsAKeyOfJavaHoweverItIsSpelled: to Java's table a UUID in capitals is the same
// lock, so a later lease may be of the other spelling. Regions are apart.
func TestGuardKnowsAKeyOfJavaHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	const capitals, small = "4F0C7A4E-1D4C-4B9F-9E6A-0A7F0B5F1C2D", "4f0c7a4e-1d4c-4b9f-9e6a-0a7f0b5f1c2d"
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		elsewhere, err := New(t.Context(), d.Database, WithPrefix(st.settings.prefix), WithRegion("elsewhere"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(elsewhere.Close)
		for _, step := range []struct {
			st    *Store
			key   string
			token int64
			want  error
		}{
			{st, small, 7, nil},
			{st, capitals, 6, fence.ErrStale},
			{st, capitals, 8, nil},
			{st, small, 7, fence.ErrStale},
			{elsewhere, small, 1, nil},
		} {
			tx := d.Begin(t)
			if err := step.st.Guard(t.Context(), tx, step.key, step.token); !errors.Is(err, step.want) {
				t.Errorf("Guard of %s with %d: got %v, want %v", step.key, step.token, err, step.want)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
