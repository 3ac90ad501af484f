// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

func TestGuardOfPgx(t *testing.T) {
	t.Parallel()
	_, pool := sqltest.OnPool(t)
	st := newTables(t, sqltest.OnPostgres(t))
	for token, want := range map[int64]error{7: nil, 6: fence.ErrStale} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if token == 6 {
			if err := st.GuardPgx(t.Context(), tx, "key", 7); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.GuardPgx(t.Context(), tx, "key", token); !errors.Is(err, want) {
			t.Errorf("GuardPgx with %d: got %v, want %v", token, err, want)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := newTables(t, sqltest.OnMySQL(t)).GuardPgx(t.Context(), nil, "key", 1); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("GuardPgx on MySQL: got %v, want ErrInvalidOption", err)
	}
}
