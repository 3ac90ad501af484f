// SPDX-License-Identifier: Apache-2.0

package springsql_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/sqlstore/springsql"
)

// It runs where ASYNCLOCK_POSTGRES_URL names a server.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("ASYNCLOCK_POSTGRES_URL")) // it is usually there already
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	prefix := springsql.WithPrefix("EXAMPLE_") // Java's setPrefix; without it, INT_
	if err := springsql.Migrate(ctx, springsql.Postgres(db), prefix); err != nil {
		log.Fatal(err)
	}
	store, err := springsql.New(ctx, springsql.Postgres(db), prefix, springsql.WithRegion("shop"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	locks, err := asynclock.New(store, asynclock.WithTTL(springsql.DefaultTTL), asynclock.WithReentry(true))
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	err = locks.WithLock(ctx, "order:42", func(context.Context, *asynclock.Lease) error {
		fmt.Println("no JdbcLockRegistry has it now")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: no JdbcLockRegistry has it now
}
