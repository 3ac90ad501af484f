// SPDX-License-Identifier: Apache-2.0

package gooselock_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/gooselock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "migrate:test"

// A world has a database and a place for locks, which all processes of a test share.
type world struct {
	*adapterkit.World
	file string
}

func newWorld(w *adapterkit.World) *world {
	w.Helper()
	return &world{w, filepath.Join(w.TempDir(), "test.db")}
}

// story tells a story in a bubble.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	adapterkit.Story(t, func(w *adapterkit.World) { tell(newWorld(w)) })
}

// A process has a client and a connection of its own.
type process struct {
	locks  *asynclock.Client
	db     *sql.DB
	locker *gooselock.Locker
}

// process makes a process, which ends with the test.
func (w *world) process(options ...asynclock.LockOption) *process {
	w.Helper()
	locks := w.Client()
	locker, err := gooselock.New(locks, key, options...)
	if err != nil {
		w.Fatal(err)
	}
	return &process{locks, w.open(), locker}
}

// open opens the database.
func (w *world) open() *sql.DB {
	w.Helper()
	db, err := sql.Open("sqlite", "file:"+w.file+"?_pragma=busy_timeout(60000)&_txlock=immediate")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { db.Close() })
	return db
}

// provider makes goose for the process, with a migration for each function.
func (w *world) provider(p *process, migrations ...func(context.Context, *sql.Tx) error) *goose.Provider {
	w.Helper()
	var all []*goose.Migration
	for i, up := range migrations {
		all = append(all, goose.NewGoMigration(int64(i+1), &goose.GoFunc{RunTx: up}, nil))
	}
	g, err := goose.NewProvider(goose.DialectSQLite3, p.db, nil,
		goose.WithGoMigrations(all...), goose.WithDisableGlobalRegistry(true), goose.WithLocker(p.locker))
	if err != nil {
		w.Fatal(err)
	}
	return g
}

// version returns how far the database is. goose's own method would lock.
func (w *world) version(p *process) (version int64) {
	w.Helper()
	row := p.db.QueryRowContext(w.Context(), "SELECT max(version_id) FROM goose_db_version")
	if err := row.Scan(&version); err != nil {
		w.Fatal(err)
	}
	return version
}

func nothing(context.Context, *sql.Tx) error { return nil }
