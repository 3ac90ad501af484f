// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store/sqlstore"
)

// These examples run where ASYNCLOCK_POSTGRES_URL names a server.

func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("ASYNCLOCK_POSTGRES_URL")) // it is usually there already
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	if err := sqlstore.Migrate(ctx, sqlstore.Postgres(db)); err != nil { // or by your own tool, see MigrationSQL
		log.Fatal(err)
	}
	store, err := sqlstore.New(ctx, sqlstore.Postgres(db))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	locks, err := asynclock.New(store)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	err = locks.WithLock(ctx, "example:report", func(context.Context, *asynclock.Lease) error {
		fmt.Println("reporting")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: reporting
}

// A holder that overslept finds that its writes come too late.
func ExampleStore_Guard() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := sqlstore.Migrate(ctx, sqlstore.Postgres(db)); err != nil {
		log.Fatal(err)
	}
	store, err := sqlstore.New(ctx, sqlstore.Postgres(db))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	locks, err := asynclock.New(store)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	// save writes under a lease, in one transaction of the application's own.
	save := func(lease *asynclock.Lease) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after Commit
		if err := store.Guard(ctx, tx, lease.Key(), lease.Token()); err != nil {
			return err
		}
		// ... write what the lock protects ...
		return tx.Commit()
	}

	sleeper, err := locks.Lock(ctx, "example:guard")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := locks.ForceUnlock(ctx, "example:guard", 0); err != nil { // as if its TTL had passed
		log.Fatal(err)
	}
	next, err := locks.Lock(ctx, "example:guard")
	if err != nil {
		log.Fatal(err)
	}
	defer next.Unlock(ctx)
	fmt.Println("the next holder:", save(next))
	fmt.Println("the sleeper is refused:", errors.Is(save(sleeper), fence.ErrStale))
	// Output:
	// the next holder: <nil>
	// the sleeper is refused: true
}

// A column of the row itself needs no other table.
func ExampleStore_Guard_column() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx) // a temporary table is its connection's
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.ExecContext(ctx, `CREATE TEMPORARY TABLE orders (id BIGINT PRIMARY KEY, state TEXT, fence BIGINT NOT NULL DEFAULT 0);
		INSERT INTO orders VALUES (42, 'new')`)
	if err != nil {
		log.Fatal(err)
	}

	save := func(state string, token int64) {
		done, err := conn.ExecContext(ctx, "UPDATE orders SET state = $1, fence = $2 WHERE id = $3 AND fence <= $2", state, token, 42)
		if err != nil {
			log.Fatal(err)
		}
		if n, _ := done.RowsAffected(); n == 0 {
			fmt.Println(state, "refused: a later holder has been here, or there is no such order")
			return
		}
		fmt.Println(state, "saved")
	}
	save("paid", 1001)
	save("shipped", 1002)   // by the next holder
	save("cancelled", 1001) // by the one before, which overslept
	// Output:
	// paid saved
	// shipped saved
	// cancelled refused: a later holder has been here, or there is no such order
}
