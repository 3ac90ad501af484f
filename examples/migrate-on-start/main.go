// SPDX-License-Identifier: Apache-2.0

// Command migrate-on-start starts three instances of a service at the same time. Each migrates the database by goose
// before it serves, and one of them finds something to do.
//
// Use it where each instance migrates when it starts, as on Kubernetes. The lock needs nothing of the database. An
// advisory lock of the database belongs to a session, and a pooler in front of it may change sessions.
//
// If the lease is lost, the context ends goose, which rolls back the migration that is under way, and Up fails. The
// instance should exit: its next start finds what is left to do. A migration that commits late is refused by the
// fence in its transaction. A migration that can't run in a transaction has no such fence.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/gooselock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencesql"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

const (
	instances = 3
	key       = "migrate:orders" // names the database
)

var migrations = []string{
	"CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL)",
	"ALTER TABLE orders ADD COLUMN amount INTEGER NOT NULL DEFAULT 0",
	"INSERT INTO orders (id, state) VALUES (1, 'new')",
}

func main() {
	url := flag.String("redis", "", "where the locks are, as redis://localhost:6379; without it: in this process")
	flag.Parse()
	if err := run(context.Background(), connector(*url)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, connect func() (*asynclock.Client, error)) error {
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := "file:" + filepath.Join(dir, "orders.db") + "?_pragma=busy_timeout(10000)&_txlock=immediate"

	type started struct {
		migrated int
		err      error
	}
	all := make(chan started, instances)
	for range instances {
		go func() {
			migrated, err := instance(ctx, connect, source)
			all <- started{migrated, err}
		}()
	}
	busy, migrated, failed := 0, 0, error(nil)
	for range instances {
		s := <-all
		migrated += s.migrated
		failed = errors.Join(failed, s.err)
		if s.migrated > 0 {
			busy++
		}
	}
	fmt.Println("instances that have started:", instances)
	fmt.Println("migrations that ran:", migrated)
	fmt.Println("instances that had to migrate:", busy)
	return failed
}

// instance is what a process does when it starts. It returns how many migrations it ran.
func instance(ctx context.Context, connect func() (*asynclock.Client, error), source string) (int, error) {
	locks, err := connect()
	if err != nil {
		return 0, err
	}
	defer locks.Close(ctx)
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	fences, err := fencesql.New(fencesql.SQLite)
	if err != nil {
		return 0, err
	}
	migrated := 0
	err = locks.WithLock(ctx, key, func(ctx context.Context, lease *asynclock.Lease) error {
		if err := fences.Migrate(ctx, db); err != nil { // makes the table of fences
			return err
		}
		provider, err := newProvider(locks, db, fences, lease)
		if err != nil {
			return err
		}
		results, err := provider.Up(ctx) // a loss of the lease ends ctx
		migrated = len(results)
		return err
	})
	return migrated, err
}

// newProvider makes a goose whose migrations are fenced. Its locker joins the lease of the caller.
func newProvider(locks *asynclock.Client, db *sql.DB, fences *fencesql.Fence, lease fence.Holder) (*goose.Provider, error) {
	locker, err := gooselock.New(locks, key, asynclock.WithReentry(true))
	if err != nil {
		return nil, err
	}
	var all []*goose.Migration
	for i, statement := range migrations {
		up := func(ctx context.Context, tx *sql.Tx) error {
			if err := fences.Guard(ctx, tx, lease); err != nil {
				return err // a later holder has migrated
			}
			_, err := tx.ExecContext(ctx, statement)
			return err
		}
		all = append(all, goose.NewGoMigration(int64(i+1), &goose.GoFunc{RunTx: up}, nil))
	}
	return goose.NewProvider(goose.DialectSQLite3, db, nil,
		goose.WithGoMigrations(all...), goose.WithDisableGlobalRegistry(true), goose.WithLocker(locker))
}

// connector returns what makes the client of a process: of the Redis at url, or, without one, of a store in
// memory, which all clients share as they would a server.
func connector(url string) func() (*asynclock.Client, error) {
	if url == "" {
		store := memstore.New()
		return func() (*asynclock.Client, error) { return asynclock.New(store) }
	}
	return func() (*asynclock.Client, error) {
		store, err := redisstore.OpenURL(url)
		if err != nil {
			return nil, err
		}
		return asynclock.New(store, asynclock.WithOwnedStore())
	}
}
