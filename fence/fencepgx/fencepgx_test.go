// SPDX-License-Identifier: Apache-2.0

package fencepgx

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencesql"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

func newStamp(t *testing.T, token int64) fence.Stamp {
	t.Helper()
	s, err := fence.NewStamp("order:42", token)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newFence returns a Fence with a table of the test's.
func newFence(t *testing.T, table string) (*Fence, *pgxpool.Pool) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), kit.Require(t, "ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f, err := New(WithTable(table))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), "DROP TABLE "+table); err != nil {
			t.Error(err)
		}
	})
	return f, pool
}

func TestGuardRefusesSmallerTokens(t *testing.T) {
	t.Parallel()
	f, pool := newFence(t, "fencepgx_tokens")
	for _, step := range []struct {
		token    int64
		commit   bool
		admitted bool
	}{{9, false, true}, {5, true, true}, {5, true, true}, {7, true, true}, {6, true, false}, {7, true, true}} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = f.Guard(t.Context(), tx, newStamp(t, step.token))
		var stale *fence.StaleError
		if step.admitted && err != nil || !step.admitted && (!errors.As(err, &stale) || stale.Newest != 7) {
			t.Errorf("token %d: got %v, want it let in: %t", step.token, err, step.admitted)
		}
		end := tx.Rollback
		if step.commit {
			end = tx.Commit
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Each key has a fence, the one that Guard knows.
func TestGuardAll(t *testing.T) {
	t.Parallel()
	f, pool := newFence(t, "fencepgx_all")
	other, err := fence.NewStamp("order:41", 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		token    int64
		admitted bool
	}{{7, true}, {7, true}, {6, false}, {8, true}} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return f.GuardAll(t.Context(), tx, fence.Stamps{newStamp(t, step.token), other})
		})
		if step.admitted && err != nil || !step.admitted && !errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d: got %v, want it let in: %t", step.token, err, step.admitted)
		}
	}
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return f.Guard(t.Context(), tx, newStamp(t, 7)) })
	if !errors.Is(err, fence.ErrStale) {
		t.Errorf("Guard: got %v, want ErrStale", err)
	}
}

// Migrate in a transaction leaves it in order, also if another transaction makes the table meanwhile.
func TestMigrateInATransaction(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), kit.Require(t, "ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f, err := New(WithTable("fencepgx_migrate"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = pool.Exec(context.WithoutCancel(t.Context()), "DROP TABLE IF EXISTS fencepgx_migrate") }()
	var txs [2]pgx.Tx
	for i := range txs {
		if txs[i], err = pool.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = txs[i].Rollback(context.WithoutCancel(t.Context())) }() // does nothing after Commit
	}
	if err := f.Migrate(t.Context(), txs[0]); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() { second <- f.Migrate(t.Context(), txs[1]) }() // ends when the first transaction does
	kit.Eventually(t, "the second waits for the first", func() bool {
		var waits bool
		err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = $1)", txs[1].Conn().PgConn().PID()).Scan(&waits)
		return err == nil && waits
	})
	if err := f.Guard(t.Context(), txs[0], newStamp(t, 7)); err != nil {
		t.Errorf("behind Migrate: got %v, want no error", err)
	}
	if err := txs[0].Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Errorf("the second: got %v, want no error", err)
	}
	if err := f.Guard(t.Context(), txs[1], newStamp(t, 6)); !errors.Is(err, fence.ErrStale) {
		t.Errorf("behind the second: got %v, want ErrStale", err)
	}
}

// A user who may not make tables finds the one that is there.
func TestMigrateByAReader(t *testing.T) {
	t.Parallel()
	f, pool := newFence(t, "fencepgx_reader")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE pg_read_all_data"); err != nil {
			return err
		}
		return f.Migrate(t.Context(), tx)
	})
	if err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

// A table of that name that has no fences is an error.
func TestMigrateWantsTheTableOfFences(t *testing.T) {
	t.Parallel()
	_, pool := newFence(t, "fencepgx_other")
	if _, err := pool.Exec(t.Context(), "ALTER TABLE fencepgx_other RENAME token TO n"); err != nil {
		t.Fatal(err)
	}
	f, err := New(WithTable("fencepgx_other"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Migrate(t.Context(), pool); err == nil {
		t.Error("another table: got no error")
	}
}

// Fences of both packages are the same.
func TestFencesAreThoseOfFencesql(t *testing.T) {
	t.Parallel()
	f, pool := newFence(t, "fencepgx_shared")
	other, err := fencesql.New(fencesql.Postgres, fencesql.WithTable("fencepgx_shared"))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := other.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), schema); err != nil {
		t.Errorf("the table of the other package: got %v, want it there", err)
	}
	if err := f.Migrate(t.Context(), pool); err != nil {
		t.Errorf("Migrate, again: got %v, want no error", err)
	}
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return f.Guard(t.Context(), tx, newStamp(t, 7)) })
	if err != nil {
		t.Fatal(err)
	}
	var key string
	var token int64
	if err := pool.QueryRow(t.Context(), "SELECT key, token FROM fencepgx_shared").Scan(&key, &token); err != nil || key != "order:42" || token != 7 {
		t.Errorf("got %q, %d, %v, want order:42 and 7", key, token, err)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	f, err := New()
	if err != nil {
		t.Fatal(err)
	}
	made := func(opts ...Option) error {
		_, err := New(opts...)
		return err
	}
	var none context.Context
	for name, err := range map[string]error{
		"nil Fence":        (*Fence)(nil).Guard(t.Context(), nil, newStamp(t, 1)),
		"zero Fence":       new(Fence).Guard(t.Context(), nil, newStamp(t, 1)),
		"no transaction":   f.Guard(t.Context(), nil, newStamp(t, 1)),
		"no holder":        f.Guard(t.Context(), struct{ pgx.Tx }{}, nil),
		"no context":       f.Guard(none, struct{ pgx.Tx }{}, newStamp(t, 1)),
		"all, no keys":     f.GuardAll(t.Context(), struct{ pgx.Tx }{}, fence.Stamps{}),
		"all, nothing":     f.GuardAll(t.Context(), nil, fence.Stamps{newStamp(t, 1)}),
		"migrate, no pool": f.Migrate(t.Context(), nil),
		"migrate, zero":    new(Fence).Migrate(t.Context(), nil),
		"table":            made(WithTable("t; DROP TABLE orders")),
		"resource":         made(WithResource(strings.Repeat("r", 65))),
		"nil option":       made(nil),
	} {
		if !errors.Is(err, fence.ErrInvalidOption) {
			t.Errorf("%s: got %v, want ErrInvalidOption", name, err)
		}
	}
}
