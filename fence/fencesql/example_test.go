// SPDX-License-Identifier: Apache-2.0

package fencesql_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence/fencesql"
)

// Whatever store the lease is from, the transaction is refused once a later holder has committed.
func ExampleFence_Guard() {
	var (
		ctx   context.Context
		db    *sql.DB
		locks *asynclock.Client
	)
	fences, err := fencesql.New(fencesql.Postgres)
	if err != nil {
		log.Fatal(err)
	}
	if err := fences.Migrate(ctx, db); err != nil {
		log.Fatal(err)
	}
	err = locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after Commit
		if err := fences.Guard(ctx, tx, lease); err != nil {
			return err // ErrStale: a later holder has committed
		}
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'paid' WHERE id = 42"); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err != nil {
		log.Fatal(err)
	}
}
