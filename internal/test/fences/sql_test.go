// SPDX-License-Identifier: Apache-2.0

package fences

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencesql"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// A dialect is a kind of database, with what the tests need of it.
type dialect struct {
	fencesql.Dialect

	driver string
	source func(t *testing.T) string
	serial string // the column of a table that counts its rows
	mark   string // what stands for an argument
	levels []sql.IsolationLevel
	// waits says of a statement that waits for a row that it does. Empty: one writer excludes others.
	waits string
}

var levels = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

var dialects = map[string]dialect{
	"postgres": {
		Dialect: fencesql.Postgres, driver: "pgx", source: fromEnvironment("ASYNCLOCK_POSTGRES_URL"),
		serial: "n BIGSERIAL PRIMARY KEY", mark: "$1", levels: levels,
		waits: "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND strpos(query, $1) > 0",
	},
	"mysql": {
		Dialect: fencesql.MySQL, driver: "mysql", source: fromEnvironment("ASYNCLOCK_MYSQL_URL"),
		serial: "n BIGINT AUTO_INCREMENT PRIMARY KEY", mark: "?", levels: levels,
		waits: "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND LOCATE(?, trx_query) > 0",
	},
	"sqlite": {
		Dialect: fencesql.SQLite, driver: "sqlite", source: inFile,
		serial: "n INTEGER PRIMARY KEY AUTOINCREMENT", mark: "?", levels: []sql.IsolationLevel{sql.LevelDefault},
	},
}

func fromEnvironment(variable string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		return kit.Require(t, variable)
	}
}

func inFile(t *testing.T) string {
	t.Helper()
	return "file:" + filepath.Join(t.TempDir(), "test.db") + "?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)"
}

// A database is one that a test uses, with tables of its own.
type database struct {
	dialect
	*sql.DB

	fences *fencesql.Fence
	prefix string
}

// onEach runs a test in each kind of database, side by side.
func onEach(t *testing.T, test func(t *testing.T, d database)) {
	t.Helper()
	t.Parallel()
	for name, kind := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newDatabase(t, kind, kind.source(t)))
		})
	}
}

// newDatabase makes the fences' table, and the tables data and log. They are dropped when the test
// is over.
func newDatabase(t *testing.T, kind dialect, source string) database {
	t.Helper()
	prefix := "f" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12] + "_"
	d, err := openDatabase(kind, source, prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	t.Cleanup(func() {
		for _, table := range []string{"data", "log", "fence"} {
			d.run(t, "DROP TABLE IF EXISTS "+prefix+table)
		}
	})
	if err := d.fences.Migrate(t.Context(), d.DB); err != nil {
		t.Fatal(err)
	}
	d.run(t, "CREATE TABLE "+prefix+"data (value VARCHAR(20))")
	d.run(t, "INSERT INTO "+prefix+"data VALUES ('')")
	d.run(t, "CREATE TABLE "+prefix+"log ("+kind.serial+", token BIGINT)")
	return d
}

func openDatabase(kind dialect, source, prefix string) (database, error) {
	fences, err := fencesql.New(kind.Dialect, fencesql.WithTable(prefix+"fence"))
	if err != nil {
		return database{}, err
	}
	db, err := sql.Open(kind.driver, source)
	return database{kind, db, fences, prefix}, err
}

func (d database) run(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := d.ExecContext(context.WithoutCancel(t.Context()), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// begin begins a transaction, which the end of the test rolls back.
func (d database) begin(t *testing.T, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := d.BeginTx(context.WithoutCancel(t.Context()), &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // it has usually ended by then
	return tx
}

// stamp makes a holder of the tests' key.
func stamp(t *testing.T, token int64) fence.Stamp {
	t.Helper()
	s, err := fence.NewStamp("order:42", token)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func init() {
	for name := range dialects {
		kinds["fencesql, "+name] = kindOf(name)
	}
}

// kindOf is a database as a resource, by its name in dialects.
func kindOf(name string) kind {
	d := dialects[name]
	return kind{
		prepare: func(t *testing.T) string {
			t.Helper()
			source := d.source(t)
			return newDatabase(t, d, source).prefix + " " + source
		},
		open: func(_ context.Context, place string) (resource, error) {
			prefix, source, _ := strings.Cut(place, " ")
			db, err := openDatabase(d, source, prefix)
			return resource{db.write, db.value, func() { _ = db.Close() }}, err
		},
	}
}

func (d database) write(ctx context.Context, h fence.Holder, value string) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := d.fences.Guard(ctx, tx, h); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE "+d.prefix+"data SET value = '"+value+"'"); err != nil {
		return err
	}
	return tx.Commit()
}

func (d database) value(ctx context.Context) (value string, err error) {
	err = d.QueryRowContext(ctx, "SELECT value FROM "+d.prefix+"data").Scan(&value)
	return value, err
}
