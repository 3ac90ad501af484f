// SPDX-License-Identifier: Apache-2.0

package migratelock_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/contrib/migratelock"
)

// If a migration fails, migrate never ends the goroutines that read the next ones.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/golang-migrate/migrate/v4.(*Migration).Buffer"))
}

const key = "migrate:test"

// A world has a database and a place for locks, which all processes of a test share.
type world struct {
	*testing.T
	store *asynclocktest.Store
	file  string
}

// newWorld makes a world whose database has the table of versions.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t, asynclocktest.New(), filepath.Join(t.TempDir(), "test.db")}
	driver := w.inner()
	defer driver.Close()
	return w
}

// inner opens a driver without another lock.
func (w *world) inner() database.Driver {
	w.Helper()
	db, err := sql.Open("sqlite", "file:"+w.file+"?_pragma=busy_timeout(60000)&_txlock=immediate")
	if err != nil {
		w.Fatal(err)
	}
	driver, err := sqlite.WithInstance(db, &sqlite.Config{})
	if err != nil {
		w.Fatal(err)
	}
	return driver
}

// story tells a story in a bubble.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { tell(newWorld(t)) })
}

// A process has a client and a connection of its own, and three migrations. The second fails if it runs again.
type process struct {
	locks   *asynclock.Client
	driver  *migratelock.Driver
	migrate *migrate.Migrate
}

// A meddler is a driver that does something before each migration.
type meddler struct {
	database.Driver
	before func() error
}

func (m *meddler) Run(migration io.Reader) error {
	if m.before != nil {
		if err := m.before(); err != nil {
			return err
		}
	}
	return m.Driver.Run(migration)
}

// process makes a process, which ends with the test. Before may be nil.
func (w *world) process(before func() error, options ...asynclock.LockOption) *process {
	w.Helper()
	locks, err := asynclock.New(w.store, asynclock.WithoutLogger())
	if err != nil {
		w.Fatal(err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	w.Cleanup(func() { locks.Close(ended) }) // which waits for a second, if a test has failed and left a lease
	driver, err := migratelock.Wrap(&meddler{w.inner(), before}, locks, key, options...)
	if err != nil {
		w.Fatal(err)
	}
	files := make(fstest.MapFS)
	for i := range 3 {
		text := fmt.Sprintf("CREATE TABLE t%d (id INTEGER);", i+1)
		files[fmt.Sprintf("%d_t.up.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	source, err := iofs.New(files, ".")
	if err != nil {
		w.Fatal(err)
	}
	m, err := migrate.NewWithInstance("iofs", source, "sqlite", driver)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { m.Close() })
	return &process{locks, driver, m}
}

// wantVersion checks how far the database is.
func (w *world) wantVersion(want int) {
	w.Helper()
	driver := w.inner()
	defer driver.Close()
	got, dirty, err := driver.Version()
	if err != nil || got != want || dirty {
		w.Errorf("got version %d, dirty %t, %v, want %d", got, dirty, err, want)
	}
}

func (w *world) hold(locks *asynclock.Client) *asynclock.Lease {
	w.Helper()
	lease, err := locks.TryLock(w.Context(), key)
	if err != nil {
		w.Fatalf("got %v, want the key free", err)
	}
	return lease
}

func (w *world) wantFree(locks *asynclock.Client) {
	w.Helper()
	w.hold(locks).Unlock(w.Context())
}

// pass lets time pass, and what happens in it be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
