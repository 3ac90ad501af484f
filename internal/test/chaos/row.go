// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencepgx"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// A row is a resource in a PostgreSQL of its own, which suffers no faults: a table
// with a row per key. It knows nothing of tokens; its writers show theirs to
// fencepgx, in the transaction that reads or writes.
type row struct {
	pool   *pgxpool.Pool
	fences *fencepgx.Fence
}

const rowTables = `
CREATE TABLE row (key text PRIMARY KEY, value bigint NOT NULL);
CREATE TABLE journal (n bigserial PRIMARY KEY, key text NOT NULL, token bigint NOT NULL,
	op text NOT NULL, read bigint NOT NULL, wrote bigint NOT NULL);`

// openRow connects to a database that makeRow has been at.
func openRow(ctx context.Context, url string) (row, error) {
	pool, err := openRowPool(ctx, url)
	if err != nil {
		return row{}, err
	}
	fences, err := fencepgx.New()
	if err != nil {
		pool.Close()
	}
	return row{pool, fences}, err
}

// makeRow makes the tables.
func makeRow(ctx context.Context, url string) error {
	r, err := openRow(ctx, url)
	if err != nil {
		return err
	}
	defer r.close()
	if _, err := r.pool.Exec(ctx, rowTables); err != nil {
		return err
	}
	return r.fences.Migrate(ctx, r.pool)
}

// openRowPool bounds what one process takes of the server's connections: those of a
// process that was stopped stay for as long as it is.
func openRowPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 4
	return pgxpool.NewWithConfig(ctx, config)
}

func (r row) close() { r.pool.Close() }

func (row) name() string { return "sql" }

func (r row) read(ctx context.Context, key, _ string, token int64) (value int64, accepted bool, err error) {
	accepted, err = r.guarded(ctx, key, token, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "SELECT value FROM row WHERE key = $1", key).Scan(&value)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // nobody has written yet
		}
		return err
	})
	return value, accepted, err
}

func (r row) write(ctx context.Context, key, op string, token, read, value int64) (bool, error) {
	return r.guarded(ctx, key, token, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `WITH written AS (
				INSERT INTO row VALUES ($1, $5) ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value)
			INSERT INTO journal (key, token, op, read, wrote) VALUES ($1, $2, $3, $4, $5)`, key, token, op, read, value)
		return err
	})
}

// guarded does something in a transaction, unless the token is stale.
func (r row) guarded(ctx context.Context, key string, token int64, do func(pgx.Tx) error) (accepted bool, err error) {
	holder, err := fence.NewStamp(key, token)
	if err != nil {
		return false, err
	}
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if err := r.fences.Guard(ctx, tx, holder); err != nil {
			return err
		}
		return do(tx)
	})
	if errors.Is(err, fence.ErrStale) {
		return false, nil
	}
	return err == nil, err
}

func (r row) journal(ctx context.Context, key string) ([]history.Record, error) {
	rows, err := r.pool.Query(ctx, "SELECT token, op, read, wrote FROM journal WHERE key = $1 ORDER BY n", key)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(line pgx.CollectableRow) (history.Record, error) {
		w := history.Record{Kind: history.Write, Key: key, Resource: r.name()}
		return w, line.Scan(&w.Token, &w.Op, &w.Read, &w.Wrote)
	})
}
