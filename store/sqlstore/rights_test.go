// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

// grants are the statements of docs/sql.md for one kind of database, for tables of a
// prefix and a user. The place is their schema, or the database.
func grants(t *testing.T, after, prefix, user, place string) (statements []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## Rights")
	_, rest, found := strings.Cut(rest, after)
	if !found {
		t.Fatalf("docs/sql.md does not say %q", after)
	}
	block := regexp.MustCompile("(?s)```sql\n(.*?)```").FindStringSubmatch(rest)
	if block == nil {
		t.Fatalf("docs/sql.md has no grants after %q", after)
	}
	edit := strings.NewReplacer("asynclock_", prefix, "INT_", prefix, " TO app", " TO "+user, " TO 'app'", " TO '"+user+"'",
		"ON app.", "ON "+place+".", "ON SCHEMA public", "ON SCHEMA "+place)
	for line := range strings.Lines(block[1]) {
		line, _, _ = strings.Cut(line, ";")
		statements = append(statements, edit.Replace(line))
	}
	return statements
}

// A kindOfTables is what rights are for.
type kindOfTables struct {
	onPostgres, onMySQL string // what comes before their grants in docs/sql.md
	migrate             func(t *testing.T, d Database, prefix string) error
	open                func(t *testing.T, d Database, prefix string) (*Store, error)
	sweep               string // the routine, and its arguments
}

var kindsOfTables = map[string]kindOfTables{
	"native": {
		"To run, on PostgreSQL", "On MySQL and MariaDB procedures",
		func(t *testing.T, d Database, prefix string) error {
			return Migrate(t.Context(), d, WithPrefix(prefix))
		},
		func(t *testing.T, d Database, prefix string) (*Store, error) {
			return New(t.Context(), d, WithPrefix(prefix))
		},
		"sweep(100)",
	},
	"spring": {
		"For Java's table on PostgreSQL", "for Java's table on MySQL",
		func(t *testing.T, d Database, prefix string) error {
			return MigrateSpring(t.Context(), d, WithPrefix(prefix))
		},
		func(t *testing.T, d Database, prefix string) (*Store, error) {
			return NewSpring(t.Context(), d, WithPrefix(prefix))
		},
		"LOCK_SWEEP('2020-01-01', 100)",
	},
}

// useAll does everything that needs a right.
func (k kindOfTables) useAll(t *testing.T, d Database, prefix string) {
	t.Helper()
	st, err := k.open(t, d, prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	c := join(t, st)
	h := c.hold(request("key", "a"))
	c.acquire(request("key", "b"))
	if err := c.renew("key", "a"); err != nil {
		t.Errorf("Renew: got %v, want no error", err)
	}
	if _, err := c.session.Inspect(t.Context(), "key"); err != nil {
		t.Errorf("Inspect: got %v, want no error", err)
	}
	for _, err := range c.session.List(t.Context(), "") {
		if err != nil {
			t.Errorf("List: got %v, want no error", err)
		}
	}
	got := c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a", Uncertain: true}})[0]
	if got.Err != nil || !got.WasHeld {
		t.Errorf("Release: got %+v, want WasHeld", got)
	}
	if _, err := c.session.Force(t.Context(), "key"); err != nil {
		t.Errorf("Force: got %v, want no error", err)
	}
	run(t, d, map[string]string{"postgres": "SELECT ", "mysql": "CALL "}[d.name]+prefix+k.sweep)
	if err := st.Guard(t.Context(), begin(t, d), "key", h.Token); err != nil {
		t.Errorf("Guard: got %v, want no error", err)
	}
}

// wantDenied: without rights, everything is.
func (k kindOfTables) wantDenied(t *testing.T, d Database, prefix string) {
	t.Helper()
	st, err := k.open(t, d, prefix)
	if err == nil { // functions of PostgreSQL are everybody's
		joined, errJoin := st.Open("id", func(store.Event) {})
		if errJoin != nil {
			t.Fatal(errJoin)
		}
		err = joined.Acquire(t.Context(), []store.AcquireRequest{request("key", "a")})[0].Err
		_ = joined.Close(t.Context())
		st.Close()
	}
	var schema *SchemaError // of a table that can't be seen at all
	if !errors.Is(err, store.ErrDenied) && !errors.As(err, &schema) {
		t.Errorf("without rights: got %v, want ErrDenied", err)
	}
}

// TestRightsSuffice: a user with the rights of docs/sql.md can do everything, and one
// without them is told so.
func TestRightsSuffice(t *testing.T) {
	t.Parallel()
	for name, k := range kindsOfTables {
		for _, schema := range []string{"public", "locks"} {
			t.Run(name+" on postgres in "+schema, func(t *testing.T) {
				t.Parallel()
				k.onSchema(t, schema)
			})
		}
		t.Run(name+" on mysql", func(t *testing.T) {
			t.Parallel()
			k.onDatabase(t)
		})
	}
}

// onSchema tests rights on PostgreSQL, where tables are in the schema that everybody finds,
// or in one that the prefix names. The database is the test's own: PostgreSQL lets no two
// change the rights to one schema at the same time.
func (k kindOfTables) onSchema(t *testing.T, schema string) {
	t.Helper()
	admin := onPostgres(t)
	prefix := newPrefix(t, admin)
	own, user := strings.ToLower(prefix)+"own", strings.ToLower(prefix)+"user"
	run(t, admin, "CREATE ROLE "+user+" LOGIN PASSWORD 'secret'")
	t.Cleanup(func() { run(t, admin, "DROP ROLE "+user) })
	run(t, admin, "CREATE DATABASE "+own)
	t.Cleanup(func() { run(t, admin, "DROP DATABASE "+own+" WITH (FORCE)") })
	u, err := url.Parse(kit.Require(t, "ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + own
	d := Postgres(openDB(t, "pgx", u.String()))
	if schema != "public" {
		schema = prefix + schema
		prefix = schema + "." + prefix
		run(t, d, "CREATE SCHEMA "+schema)
	}
	if err := k.migrate(t, d, prefix); err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, "secret")
	theirs := Postgres(openDB(t, "pgx", u.String()))
	k.wantDenied(t, theirs, prefix)
	for _, grant := range grants(t, k.onPostgres, prefix, user, schema) {
		run(t, d, grant)
	}
	k.useAll(t, theirs, prefix)
}

// onDatabase tests rights on MySQL.
func (k kindOfTables) onDatabase(t *testing.T) {
	t.Helper()
	d := onMySQL(t)
	prefix := newPrefix(t, d)
	if err := k.migrate(t, d, prefix); err != nil {
		t.Fatal(err)
	}
	user := prefix + "user"
	run(t, d, "CREATE USER '"+user+"' IDENTIFIED BY 'secret'")
	t.Cleanup(func() { run(t, d, "DROP USER '"+user+"'") })
	config, err := mysql.ParseDSN(kit.Require(t, "ASYNCLOCK_MYSQL_URL"))
	if err != nil {
		t.Fatal(err)
	}
	config.User, config.Passwd = user, "secret"
	theirs := MySQL(openDB(t, "mysql", config.FormatDSN()))
	k.wantDenied(t, theirs, prefix)
	for _, grant := range grants(t, k.onMySQL, prefix, user, config.DBName) {
		run(t, d, grant)
	}
	k.useAll(t, theirs, prefix)
}
