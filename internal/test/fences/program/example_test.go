// SPDX-License-Identifier: Apache-2.0

// The whole program of docs/fences.md. Its main is run by the example below it.
package main

import (
	"context"
	"database/sql"
	"log"

	_ "modernc.org/sqlite" // the driver

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence/fencesql"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have a memory of its own
	fences, err := fencesql.New(fencesql.SQLite)
	if err != nil {
		return err
	}
	if err := fences.Migrate(ctx, db); err != nil { // makes the table asynclock_fence
		return err
	}
	locks, err := asynclock.New(memstore.New()) // or redisstore.OpenURL
	if err != nil {
		return err
	}
	defer locks.Close(ctx)
	return locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after Commit
		if err := fences.Guard(ctx, tx, lease); err != nil {
			return err // ErrStale: a later holder has committed
		}
		// ... write what the lock protects, by tx ...
		return tx.Commit()
	})
}

// The program ends without an error.
func Example() {
	main()
	// Output:
}
