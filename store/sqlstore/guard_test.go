// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/asynclock/asynclock-go/internal/sqlconn/sqltest"
	"github.com/asynclock/asynclock-go/store"
)

// TestGuardIsPartOfTheTransaction: what was rolled back has guarded nothing, and a later
// lease's transaction comes after the one that is under way.
func TestGuardIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		old, late := d.Begin(t), d.Begin(t)
		if err := st.Guard(t.Context(), late, "key", 9); err != nil {
			t.Fatal(err)
		}
		if err := late.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := st.Guard(t.Context(), old, "key", 5); err != nil {
			t.Fatalf("Guard after 9 was rolled back: got %v, want no error", err)
		}
		next, done := d.Begin(t), make(chan error, 1)
		go func() { done <- st.Guard(context.Background(), next, "key", 9) }()
		select {
		case err := <-done:
			t.Errorf("Guard of a later lease did not wait: got %v", err)
		case <-time.After(300 * time.Millisecond): // it can't be told from one that would wait for less
		}
		if err := old.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("Guard of the later lease: got %v, want no error", err)
		}
	})
}

// TestGuardAtHigherLevels: MySQL waits there, too. PostgreSQL refuses a transaction that
// began to read before the other's commit, with what says that it is to be tried again.
func TestGuardAtHigherLevels(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
			next, err := d.DB.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = next.Rollback() }) // it has usually ended by then
			var one int
			if err := next.QueryRowContext(t.Context(), "SELECT 1").Scan(&one); err != nil {
				t.Fatal(err)
			}
			old := d.Begin(t)
			if err := st.Guard(t.Context(), old, level.String(), 5); err != nil {
				t.Fatal(err)
			}
			if err := old.Commit(); err != nil {
				t.Fatal(err)
			}
			err = st.Guard(t.Context(), next, level.String(), 9)
			if refused := isSerialization(err); refused != (d.Kind == "postgres") || !refused && err != nil {
				t.Errorf("Guard at %v of a snapshot from before the last one's commit: got %v, want it to be tried again: %v", level, err, d.Kind == "postgres")
			}
			if err := next.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func isSerialization(err error) bool {
	var sent *pgconn.PgError
	return errors.As(err, &sent) && sent.Code == "40001"
}

func TestGuardOfPgx(t *testing.T) {
	t.Parallel()
	_, pool := sqltest.OnPool(t)
	st := newTables(t, sqltest.OnPostgres(t))
	for token, want := range map[int64]error{7: nil, 6: ErrStale} {
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
