// SPDX-License-Identifier: Apache-2.0

package fences

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencesql"
)

// A holder overslept. The next one has committed since, so the sleeper's transaction is refused.
func Example_sql() {
	if err := showSQL(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the next holder: <nil>
	// the sleeper is refused: true
	// paid
}

func showSQL() error {
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "orders.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT); INSERT INTO orders VALUES (42, 'new')"); err != nil {
		return err
	}
	fences, err := fencesql.New(fencesql.SQLite)
	if err != nil {
		return err
	}
	if err := fences.Migrate(ctx, db); err != nil {
		return err
	}
	save := func(lease fence.Holder, state string) error { // a lease is a Holder
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after Commit
		if err := fences.Guard(ctx, tx, lease); err != nil {
			return err // ErrStale: a later holder has committed
		}
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = ? WHERE id = 42", state); err != nil {
			return err
		}
		return tx.Commit()
	}

	sleeper, err := fence.NewStamp("order:42", 1001)
	if err != nil {
		return err
	}
	next, err := fence.NewStamp("order:42", 1002)
	if err != nil {
		return err
	}
	fmt.Println("the next holder:", save(next, "paid"))
	fmt.Println("the sleeper is refused:", errors.Is(save(sleeper, "cancelled"), fence.ErrStale))
	var state string
	err = db.QueryRowContext(ctx, "SELECT state FROM orders WHERE id = 42").Scan(&state)
	fmt.Println(state)
	return err
}
