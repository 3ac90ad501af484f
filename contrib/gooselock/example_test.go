// SPDX-License-Identifier: Apache-2.0

package gooselock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/gooselock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A service migrates its database when it starts.
func Example() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New()) // in production: redisstore
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // so that all use the same memory
	migrations := fstest.MapFS{"1_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INTEGER);\n")}}

	locker, err := gooselock.New(locks, "migrate:orders")
	if err != nil {
		log.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	results, err := provider.Up(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println("migrated to version", r.Source.Version)
	}
	// Output: migrated to version 1
}

// A service migrates under a lease of its own, so goose stops when that is lost.
func Example_lease() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New()) // in production: redisstore
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // so that all use the same memory
	migrations := fstest.MapFS{"1_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INTEGER);\n")}}
	locker, err := gooselock.New(locks, "migrate:orders", asynclock.WithReentry(true))
	if err != nil {
		log.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	if err := migrate(ctx, locks, provider); err != nil {
		log.Fatal(err)
	}
	fmt.Println(provider.GetDBVersion(ctx))
	// Output: 1 <nil>
}

func migrate(ctx context.Context, locks *asynclock.Client, provider *goose.Provider) error {
	return locks.WithLock(ctx, "migrate:orders", func(ctx context.Context, _ *asynclock.Lease) error {
		_, err := provider.Up(ctx)
		return err
	})
}
