// SPDX-License-Identifier: Apache-2.0

package migratelock_test

import (
	"database/sql"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/migratelock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

// If a migration fails, migrate never ends the goroutines that read the next ones.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/golang-migrate/migrate/v4.(*Migration).Buffer"))
}

const key = "migrate:test"

// A world has a database and a place for locks, which all processes of a test share.
type world struct {
	*adapterkit.World
	file string
}

// newWorld makes a world whose database has the table of versions.
func newWorld(shared *adapterkit.World) *world {
	shared.Helper()
	w := &world{shared, filepath.Join(shared.TempDir(), "test.db")}
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
	adapterkit.Story(t, func(w *adapterkit.World) { tell(newWorld(w)) })
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
	return w.processOf(w.Client(), before, options...)
}

func (w *world) processOf(locks *asynclock.Client, before func() error, options ...asynclock.LockOption) *process {
	w.Helper()
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
