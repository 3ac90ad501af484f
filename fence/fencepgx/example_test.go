// SPDX-License-Identifier: Apache-2.0

package fencepgx_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencepgx"
)

// This example runs where ASYNCLOCK_POSTGRES_URL names a server.
func ExampleFence_Guard() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	fences, err := fencepgx.New()
	if err != nil {
		log.Fatal(err)
	}
	if err := fences.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}
	save := func(lease fence.Holder) error { // a lease is a Holder
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := fences.Guard(ctx, tx, lease); err != nil {
				return err // BeginFunc rolls back
			}
			// ... write what the lock protects ...
			return nil
		})
	}

	sleeper, err := fence.NewStamp("example:fencepgx", 1001)
	if err != nil {
		log.Fatal(err)
	}
	next, err := fence.NewStamp("example:fencepgx", 1002)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the next holder:", save(next))
	fmt.Println("the sleeper is refused:", errors.Is(save(sleeper), fence.ErrStale))
	// Output:
	// the next holder: <nil>
	// the sleeper is refused: true
}
