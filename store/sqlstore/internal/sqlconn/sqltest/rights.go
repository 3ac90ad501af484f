// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// grants are the statements of docs/stores/sql.md for one kind of database, for tables of a
// prefix and a user. The place is their schema, or the database.
func grants(t *testing.T, after, prefix, user, place string) (statements []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kit.Root(t), "docs/stores/sql.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## Rights")
	_, rest, found := strings.Cut(rest, after)
	if !found {
		t.Fatalf("docs/stores/sql.md does not say %q", after)
	}
	block := regexp.MustCompile("(?s)```sql\n(.*?)```").FindStringSubmatch(rest)
	if block == nil {
		t.Fatalf("docs/stores/sql.md has no grants after %q", after)
	}
	edit := strings.NewReplacer("asynclock_", prefix, "INT_", prefix, " TO app", " TO "+user, " TO 'app'", " TO '"+user+"'",
		"ON app.", "ON "+place+".", "ON SCHEMA public", "ON SCHEMA "+place)
	for line := range strings.Lines(block[1]) {
		line, _, _ = strings.Cut(line, ";")
		statements = append(statements, edit.Replace(line))
	}
	return statements
}

// Rights are what comes before the grants for a store's tables in docs/stores/sql.md.
type Rights struct{ OnPostgres, OnMySQL string }

// useAll does everything that needs a right.
func (s Suite) useAll(t *testing.T, d Database, prefix string) {
	t.Helper()
	st := s.open(t, d, prefix)
	wantKnown(t, st)
	c := s.Join(t, st)
	h := c.Hold(Request("key", "a"))
	c.Acquire(Request("key", "b"))
	if err := c.Renew("key", "a"); err != nil {
		t.Errorf("Renew: got %v, want no error", err)
	}
	if _, err := c.Session.Inspect(t.Context(), "key"); err != nil {
		t.Errorf("Inspect: got %v, want no error", err)
	}
	for _, err := range c.Session.List(t.Context(), "") {
		if err != nil {
			t.Errorf("List: got %v, want no error", err)
		}
	}
	got := c.Session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a", Uncertain: true}})[0]
	if got.Err != nil || !got.WasHeld {
		t.Errorf("Release: got %+v, want WasHeld", got)
	}
	if _, err := c.Session.Force(t.Context(), "key", 0); err != nil {
		t.Errorf("Force: got %v, want no error", err)
	}
	if st.Features().Notes {
		session := c.Session.(store.NoteSession)
		q := c.Hold(Request("noted", "e"))
		r := store.NoteRequest{Key: "noted", Owner: "e", Token: q.Token, Seq: 1, TTL: store.DefaultTTL}
		for range 2 {
			if err := session.WriteNote(t.Context(), r); err != nil {
				t.Errorf("WriteNote: got %v, want no error", err)
			}
		}
		if _, err := session.ReadNote(t.Context(), "noted"); err != nil {
			t.Errorf("ReadNote: got %v, want no error", err)
		}
	}
	if st.Features().Shared {
		q := Request("shared", "c")
		q.Share = store.Share{Mode: store.Shared}
		c.Hold(q)
		q.Owner = "d"
		c.Hold(q)
		c.Release("shared", "c")
	}
	if st.Features().Limits {
		limits := c.Session.(store.LimitSession)
		for _, limit := range []int32{2, 0} {
			if err := limits.SetLimit(t.Context(), "limited", limit); err != nil {
				t.Errorf("SetLimit: got %v, want no error", err)
			}
		}
	}
	d.RunRoutine(t, prefix+s.Sweep())
	if err := st.Guard(t.Context(), d.Begin(t), "key", h.Token); err != nil {
		t.Errorf("Guard: got %v, want no error", err)
	}
}

// wantDenied: without rights, New says so.
func (s Suite) wantDenied(t *testing.T, d Database, prefix string) {
	t.Helper()
	_, err := s.Open(t.Context(), d.Database, prefix)
	var schema *sqlconn.SchemaError // of a table that can't be seen at all
	if !errors.Is(err, store.ErrDenied) && !errors.As(err, &schema) {
		t.Errorf("New without rights: got %v, want ErrDenied", err)
	}
}

// readOnlyServerIsRefused is a test on PostgreSQL; serversOfOtherSettings has that on MariaDB.
func (s Suite) readOnlyServerIsRefused(t *testing.T) {
	b := s.NewTables(t, OnPostgres(t))
	u, err := url.Parse(kit.Require(t, "ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("default_transaction_read_only", "on")
	u.RawQuery = query.Encode()
	s.wantReadOnly(t, Postgres(OpenDB(t, "pgx", u.String())), b.Prefix)
}

// wantReadOnly: New says that the server takes no writes.
func (s Suite) wantReadOnly(t *testing.T, d Database, prefix string) {
	t.Helper()
	var schema *sqlconn.SchemaError
	if _, err := s.Open(t.Context(), d.Database, prefix); !errors.As(err, &schema) || !strings.Contains(schema.Why, "read-only") {
		t.Errorf("New on a read-only server: got %v, want a SchemaError that says so", err)
	}
}

// rightsSuffice is a test: a user with the rights of docs/stores/sql.md can do everything, and one
// without them is told so.
func (s Suite) rightsSuffice(t *testing.T) {
	for _, schema := range []string{"public", "locks"} {
		t.Run("on postgres in "+schema, func(t *testing.T) {
			t.Parallel()
			s.onSchema(t, schema)
		})
	}
	t.Run("on mysql", func(t *testing.T) {
		t.Parallel()
		s.onDatabase(t)
	})
}

// onSchema tests rights on PostgreSQL, where tables are in the schema that everybody finds,
// or in one that the prefix names. The database is the test's own: PostgreSQL lets no two
// change the rights to one schema at the same time.
func (s Suite) onSchema(t *testing.T, schema string) {
	t.Helper()
	admin := OnPostgres(t)
	prefix := admin.NewPrefix(t)
	own, user := strings.ToLower(prefix)+"own", strings.ToLower(prefix)+"user"
	admin.Run(t, "CREATE ROLE "+user+" LOGIN PASSWORD 'secret'")
	t.Cleanup(func() { admin.Run(t, "DROP ROLE "+user) })
	admin.Run(t, "CREATE DATABASE "+own)
	t.Cleanup(func() { admin.Run(t, "DROP DATABASE "+own+" WITH (FORCE)") })
	u, err := url.Parse(kit.Require(t, "ASYNCLOCK_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + own
	d := Postgres(OpenDB(t, "pgx", u.String()))
	if schema != "public" {
		schema = prefix + schema
		prefix = schema + "." + prefix
		d.Run(t, "CREATE SCHEMA "+schema)
	}
	if err := s.Migrate(t.Context(), d.Database, prefix); err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, "secret")
	theirs := Postgres(OpenDB(t, "pgx", u.String()))
	s.wantDenied(t, theirs, prefix)
	d.Run(t, "GRANT USAGE ON SCHEMA "+schema+" TO "+user)
	d.Run(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+prefix+s.KeyTables[0]+" TO "+user) // as Java needs
	s.wantDenied(t, theirs, prefix)
	for _, grant := range grants(t, s.Rights.OnPostgres, prefix, user, schema) {
		d.Run(t, grant)
	}
	s.useAll(t, theirs, prefix)
	st := s.open(t, theirs, prefix)
	d.Run(t, "REVOKE SELECT ON pg_stat_database FROM PUBLIC")
	d.Run(t, "REVOKE SELECT ON "+prefix+s.KeyTables[0]+" FROM "+user)
	found := Check(t, st.(store.CheckedStore))
	found.Want(t, "connections", store.VerdictNote, "not known", "pg_stat_database")
	found.Want(t, "schema", store.VerdictNote, "not known", "docs/stores/sql.md")
}

// onDatabase tests rights on MySQL.
func (s Suite) onDatabase(t *testing.T) {
	t.Helper()
	d := OnMySQL(t)
	prefix := d.NewPrefix(t)
	if err := s.Migrate(t.Context(), d.Database, prefix); err != nil {
		t.Fatal(err)
	}
	user := prefix + "user"
	d.Run(t, "CREATE USER '"+user+"' IDENTIFIED BY 'secret'")
	t.Cleanup(func() { d.Run(t, "DROP USER '"+user+"'") })
	config, err := mysql.ParseDSN(kit.Require(t, "ASYNCLOCK_MYSQL_URL"))
	if err != nil {
		t.Fatal(err)
	}
	config.User, config.Passwd = user, "secret"
	theirs := MySQL(OpenDB(t, "mysql", config.FormatDSN()))
	s.wantDenied(t, theirs, prefix)
	for _, grant := range grants(t, s.Rights.OnMySQL, prefix, user, config.DBName) {
		d.Run(t, grant)
	}
	s.useAll(t, theirs, prefix)
}
