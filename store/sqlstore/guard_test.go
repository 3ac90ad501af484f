// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// begin begins a transaction at READ COMMITTED, whatever the default is.
func begin(t testing.TB, d Database) *sql.Tx {
	t.Helper()
	tx, err := d.db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // most have ended by then
	return tx
}

func TestGuardRefusesStaleTokens(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		onTables(t, d, func(t *testing.T, st *Store, _ string) {
			for _, step := range []struct {
				key   string
				token int64
				fresh bool
			}{
				{"key", 5, true},
				{"key", 5, true},
				{"key", 7, true},
				{"key", 6, false},
				{"key", 5, false},
				{"key", 7, true},
				{"other\x00%key", 1, true},
			} {
				tx := begin(t, d)
				err := st.Guard(t.Context(), tx, step.key, step.token)
				var stale *StaleError
				switch {
				case step.fresh && err != nil:
					t.Errorf("Guard with %d: got %v, want no error", step.token, err)
				case !step.fresh && (!errors.Is(err, ErrStale) || !errors.As(err, &stale) || stale.Newest != 7):
					t.Errorf("Guard with %d: got %v, want ErrStale after 7", step.token, err)
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
			}
			for _, bad := range []struct {
				key   string
				token int64
				want  error
			}{{"", 1, store.ErrBadKey}, {"key", 0, store.ErrBadOption}} {
				if err := st.Guard(t.Context(), begin(t, d), bad.key, bad.token); !errors.Is(err, bad.want) {
					t.Errorf("Guard(%q, %d): got %v, want %v", bad.key, bad.token, err, bad.want)
				}
			}
		})
	})
}

// TestGuardIsPartOfTheTransaction: what was rolled back has guarded nothing, and a later
// lease's transaction comes after the one that is under way.
func TestGuardIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		st := newTables(t, d)
		old, late := begin(t, d), begin(t, d)
		if err := st.Guard(t.Context(), late, "key", 9); err != nil {
			t.Fatal(err)
		}
		if err := late.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := st.Guard(t.Context(), old, "key", 5); err != nil {
			t.Fatalf("Guard after 9 was rolled back: got %v, want no error", err)
		}
		next, done := begin(t, d), make(chan error, 1)
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

// TestGuardKnowsAKeyOfJavaHoweverItIsSpelled: to Java's table a UUID in capitals is the same
// lock, so a later lease may be of the other spelling. Regions are apart.
func TestGuardKnowsAKeyOfJavaHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	const capitals, small = "4F0C7A4E-1D4C-4B9F-9E6A-0A7F0B5F1C2D", "4f0c7a4e-1d4c-4b9f-9e6a-0a7f0b5f1c2d"
	onEach(t, func(t *testing.T, d Database) {
		st := newSpringTables(t, d)
		elsewhere, err := NewSpring(t.Context(), d, WithPrefix(st.settings.prefix), WithRegion("elsewhere"))
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
			{st, capitals, 6, ErrStale},
			{st, capitals, 8, nil},
			{st, small, 7, ErrStale},
			{elsewhere, small, 1, nil},
		} {
			tx := begin(t, d)
			if err := step.st.Guard(t.Context(), tx, step.key, step.token); !errors.Is(err, step.want) {
				t.Errorf("Guard of %s with %d: got %v, want %v", step.key, step.token, err, step.want)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestGuardAtHigherLevels: MySQL waits there, too. PostgreSQL refuses a transaction that
// began to read before the other's commit, with what says that it is to be tried again.
func TestGuardAtHigherLevels(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		st := newTables(t, d)
		for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
			next, err := d.db.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = next.Rollback() }) // it has ended by then, as a rule
			var one int
			if err := next.QueryRowContext(t.Context(), "SELECT 1").Scan(&one); err != nil {
				t.Fatal(err)
			}
			old := begin(t, d)
			if err := st.Guard(t.Context(), old, level.String(), 5); err != nil {
				t.Fatal(err)
			}
			if err := old.Commit(); err != nil {
				t.Fatal(err)
			}
			err = st.Guard(t.Context(), next, level.String(), 9)
			if refused := d.again(err, ""); refused != (d.name == "postgres") || !refused && err != nil {
				t.Errorf("Guard at %v of a snapshot from before the last one's commit: got %v, want it to be tried again: %v", level, err, d.name == "postgres")
			}
			if err := next.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestGuardOfPgx(t *testing.T) {
	t.Parallel()
	pool := onPool(t)
	st := newTables(t, onPostgres(t))
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
	if err := newTables(t, onMySQL(t)).GuardPgx(t.Context(), nil, "key", 1); !errors.Is(err, store.ErrBadOption) {
		t.Errorf("GuardPgx on MySQL: got %v, want ErrBadOption", err)
	}
}
