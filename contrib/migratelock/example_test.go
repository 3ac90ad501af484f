// SPDX-License-Identifier: Apache-2.0

package migratelock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/migratelock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A service migrates its database when it starts.
func Example() {
	locks, err := asynclock.New(memstore.New()) // in production: redisstore
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1) // so that all use the same memory
	files := fstest.MapFS{"1_orders.up.sql": {Data: []byte("CREATE TABLE orders (id INTEGER);")}}
	source, err := iofs.New(files, ".")
	if err != nil {
		log.Fatal(err)
	}

	inner, err := sqlite.WithInstance(db, &sqlite.Config{})
	if err != nil {
		log.Fatal(err)
	}
	driver, err := migratelock.Wrap(inner, locks, "migrate:orders")
	if err != nil {
		log.Fatal(err)
	}
	m, err := migrate.NewWithInstance("iofs", source, "sqlite", driver)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close() // closes db, too
	if err := m.Up(); err != nil {
		log.Fatal(err)
	}
	version, _, err := m.Version()
	fmt.Println("migrated to version", version, err)
	// Output: migrated to version 1 <nil>
}
