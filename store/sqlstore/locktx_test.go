// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

func TestLockOfATransaction(t *testing.T) {
	t.Parallel()
	d := sqltest.OnPostgres(t)
	first, second := d.Begin(t), d.Begin(t)
	key := t.Name() + d.NewPrefix(t) // the server may be in use by others
	if err := LockTx(t.Context(), first, key); err != nil {
		t.Fatal(err)
	}
	if got, err := TryLockTx(t.Context(), second, key); err != nil || got {
		t.Errorf("TryLockTx of a locked key: got %v, %v, want false", got, err)
	}
	if got, err := TryLockTx(t.Context(), second, key+"2"); err != nil || !got {
		t.Errorf("TryLockTx of another key: got %v, %v, want true", got, err)
	}
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := LockTx(t.Context(), second, key); err != nil {
		t.Errorf("LockTx after the transaction that had the key: got %v, want no error", err)
	}
	if err := LockTx(t.Context(), second, ""); !errors.Is(err, store.ErrInvalidKey) {
		t.Errorf("LockTx of no key: got %v, want ErrInvalidKey", err)
	}
	if _, err := TryLockTx(t.Context(), second, ""); !errors.Is(err, store.ErrInvalidKey) {
		t.Errorf("TryLockTx of no key: got %v, want ErrInvalidKey", err)
	}
}

// TestLockOfATransactionTakesReadCommitted: at the levels above it, what the transaction
// reads under the lock may be from before the lock was its.
func TestLockOfATransactionTakesReadCommitted(t *testing.T) {
	t.Parallel()
	d := sqltest.OnPostgres(t)
	key := t.Name() + d.NewPrefix(t) // the server may be in use by others
	for level, refused := range map[sql.IsolationLevel]bool{
		sql.LevelReadUncommitted: false, // which is READ COMMITTED to PostgreSQL
		sql.LevelReadCommitted:   false,
		sql.LevelRepeatableRead:  true,
		sql.LevelSerializable:    true,
	} {
		tx, err := d.DB.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
		if err != nil {
			t.Fatal(err)
		}
		locked, tried := TryLockTx(t.Context(), tx, key)
		if errors.Is(tried, ErrIsolation) != refused || locked == refused {
			t.Errorf("TryLockTx at %v: got %v, %v, want it refused: %v", level, locked, tried, refused)
		}
		if err := LockTx(t.Context(), tx, key); errors.Is(err, ErrIsolation) != refused {
			t.Errorf("LockTx at %v: got %v, want it refused: %v", level, err, refused)
		}
		other := d.Begin(t)
		if free, err := TryLockTx(t.Context(), other, key); err != nil || free != refused {
			t.Errorf("lock after that at %v: got free %v, %v, want %v", level, free, err, refused)
		}
		for _, tx := range []*sql.Tx{other, tx} {
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
		}
	}
}
