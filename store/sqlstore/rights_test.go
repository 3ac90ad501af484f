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

	"github.com/asynclock/asynclock-go/asynclock"
)

// grants are the statements of docs/sql.md for one kind of database, for tables of a
// prefix and a user.
func grants(t *testing.T, after, prefix, user, database string) (statements []string) {
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
	edit := strings.NewReplacer("asynclock_", prefix, " TO app", " TO "+user, " TO 'app'", " TO '"+user+"'", "ON app.", "ON "+database+".")
	for line := range strings.Lines(block[1]) {
		line, _, _ = strings.Cut(line, ";")
		statements = append(statements, edit.Replace(line))
	}
	return statements
}

// useAll does everything that needs a right.
func useAll(t *testing.T, d Database, prefix string) {
	t.Helper()
	st := newStore(t, d, WithPrefix(prefix))
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
	got := c.session.Release(t.Context(), []asynclock.ReleaseRequest{{Key: "key", Owner: "a", Uncertain: true}})[0]
	if got.Err != nil || !got.WasHeld {
		t.Errorf("Release: got %+v, want WasHeld", got)
	}
	if _, err := c.session.Force(t.Context(), "key"); err != nil {
		t.Errorf("Force: got %v, want no error", err)
	}
	run(t, d, map[string]string{"postgres": "SELECT ", "mysql": "CALL "}[d.name]+prefix+"sweep()")
	if err := st.Guard(t.Context(), begin(t, d), "key", h.First); err != nil {
		t.Errorf("Guard: got %v, want no error", err)
	}
}

// TestRightsSuffice: a user with the rights of docs/sql.md can do everything, and one
// without them is told so.
func TestRightsSuffice(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		d := onPostgres(t)
		prefix := newPrefix(t, d)
		if err := Migrate(t.Context(), d, WithPrefix(prefix)); err != nil {
			t.Fatal(err)
		}
		user := strings.ToLower(prefix) + "user"
		run(t, d, "CREATE ROLE "+user+" LOGIN PASSWORD 'secret'")
		t.Cleanup(func() { run(t, d, "DROP OWNED BY "+user); run(t, d, "DROP ROLE "+user) })
		u, err := url.Parse(serverURL(t, "ASYNCLOCK_POSTGRES_URL"))
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(user, "secret")
		theirs := Postgres(openDB(t, "pgx", u.String()))
		wantDenied(t, theirs, prefix)
		for _, grant := range grants(t, "on PostgreSQL", prefix, user, "") {
			run(t, d, grant)
		}
		useAll(t, theirs, prefix)
	})
	t.Run("mysql", func(t *testing.T) {
		d := onMySQL(t)
		prefix := newPrefix(t, d)
		if err := Migrate(t.Context(), d, WithPrefix(prefix)); err != nil {
			t.Fatal(err)
		}
		user := prefix + "user"
		run(t, d, "CREATE USER '"+user+"' IDENTIFIED BY 'secret'")
		t.Cleanup(func() { run(t, d, "DROP USER '"+user+"'") })
		config, err := mysql.ParseDSN(serverURL(t, "ASYNCLOCK_MYSQL_URL"))
		if err != nil {
			t.Fatal(err)
		}
		config.User, config.Passwd = user, "secret"
		theirs := MySQL(openDB(t, "mysql", config.FormatDSN()))
		wantDenied(t, theirs, prefix)
		for _, grant := range grants(t, "On MySQL", prefix, user, config.DBName) {
			run(t, d, grant)
		}
		useAll(t, theirs, prefix)
	})
}

func wantDenied(t *testing.T, d Database, prefix string) {
	t.Helper()
	st, err := New(t.Context(), d, WithPrefix(prefix))
	if err == nil { // functions of PostgreSQL are everybody's
		joined, errJoin := st.Join("id", func(asynclock.Event) {})
		if errJoin != nil {
			t.Fatal(errJoin)
		}
		err = joined.Acquire(t.Context(), []asynclock.AcquireRequest{request("key", "a")})[0].Err
		_ = joined.Leave(t.Context())
		st.Close()
	}
	if !errors.Is(err, asynclock.ErrDenied) {
		t.Errorf("without rights: got %v, want ErrDenied", err)
	}
}
