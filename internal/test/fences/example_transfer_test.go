// SPDX-License-Identifier: Apache-2.0

package fences

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencesql"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A bank keeps accounts as rows, and locks each under a key of its own.
type bank struct {
	db     *sql.DB
	fences *fencesql.Fence
	locks  *asynclock.Client
}

// transfer needs both accounts, and another one may need them the other way round.
func (b *bank) transfer(ctx context.Context, from, to, amount int) error {
	keys := []string{fmt.Sprintf("account:%d", from), fmt.Sprintf("account:%d", to)} // in any order
	return b.locks.WithLockAll(ctx, keys, func(ctx context.Context, accounts *asynclock.MultiLease) error {
		return b.book(ctx, accounts, from, to, amount)
	})
}

// book moves money, unless a later holder of either account has been here.
func (b *bank) book(ctx context.Context, accounts fence.Holders, from, to, amount int) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := b.fences.GuardAll(ctx, tx, accounts); err != nil {
		return err // ErrStale: a later holder of an account has committed
	}
	for account, change := range map[int]int{from: -amount, to: amount} {
		if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance + ? WHERE id = ?", change, account); err != nil {
			return err // the table has CHECK (balance >= 0)
		}
	}
	return tx.Commit()
}

// Transfers in opposite directions wait for each other, and one that overslept is refused.
func Example_transfer() {
	if err := showTransfers(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// after ten transfers there and ten back: 100 and 100
	// the next holder: <nil>
	// the sleeper is refused: true
	// 110 and 90
}

func showTransfers(ctx context.Context) error {
	b, closeBank, err := openBank(ctx)
	if err != nil {
		return err
	}
	defer closeBank()
	ends := make(chan error, 20)
	for range cap(ends) / 2 { // each goroutine ends with its transfer
		go func() { ends <- b.transfer(ctx, 3, 7, 5) }()
		go func() { ends <- b.transfer(ctx, 7, 3, 5) }()
	}
	for range cap(ends) {
		err = errors.Join(err, <-ends)
	}
	if err != nil {
		return err
	}
	fmt.Println("after ten transfers there and ten back:", b.balances(ctx))

	sleeper, err := b.locks.LockAll(ctx, []string{"account:3", "account:7"})
	if err != nil {
		return err
	}
	for _, key := range sleeper.Keys() { // as if its TTL had passed
		if _, err := b.locks.ForceUnlock(ctx, key, 0); err != nil {
			return err
		}
	}
	fmt.Println("the next holder:", b.transfer(ctx, 7, 3, 10))
	fmt.Println("the sleeper is refused:", errors.Is(b.book(ctx, sleeper, 3, 7, 50), fence.ErrStale))
	fmt.Println(b.balances(ctx))
	return nil
}

func openBank(ctx context.Context) (b *bank, closeBank func(), err error) {
	dir, err := os.MkdirTemp("", "bank")
	if err != nil {
		return nil, nil, err
	}
	b = new(bank)
	closeBank = func() { _ = errors.Join(b.locks.Close(ctx), b.db.Close(), os.RemoveAll(dir)) }
	b.locks, err = asynclock.New(memstore.New()) // or redisstore.OpenURL
	if err != nil {
		return nil, nil, err
	}
	b.db, err = sql.Open("sqlite", "file:"+filepath.Join(dir, "bank.db")+"?_pragma=busy_timeout(30000)")
	if err != nil {
		return nil, nil, err
	}
	b.fences, err = fencesql.New(fencesql.SQLite)
	if err != nil {
		return nil, nil, err
	}
	if err := b.fences.Migrate(ctx, b.db); err != nil {
		return nil, nil, err
	}
	_, err = b.db.ExecContext(ctx, `CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
		INSERT INTO accounts VALUES (3, 100), (7, 100)`)
	return b, closeBank, err
}

// balances are those of both accounts.
func (b *bank) balances(ctx context.Context) string {
	var three, seven int
	const query = "SELECT (SELECT balance FROM accounts WHERE id = 3), (SELECT balance FROM accounts WHERE id = 7)"
	if err := b.db.QueryRowContext(ctx, query).Scan(&three, &seven); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d and %d", three, seven)
}
