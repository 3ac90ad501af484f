// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/asynclock/asynclock-go/store"
)

// Answers that the tests' servers don't give.
func TestJudgments(t *testing.T) {
	for name, c := range map[string]struct {
		got     store.Finding
		verdict store.Verdict
		fact    string
	}{
		"a replica":             {judgePostgres([]string{"15.1", "true", "on"}), store.VerdictFail, "PostgreSQL 15.1 is a replica"},
		"MySQL":                 {judgeMySQL([]string{"8.0.36", "0", "0"}), store.VerdictOK, "MySQL 8.0.36 takes writes"},
		"a replica of MariaDB":  {judgeMySQL([]string{"10.11.4-MariaDB-log", "1", "0"}), store.VerdictFail, "MariaDB 10.11.4 is read-only"},
		"a log of statements":   {judgeMySQL([]string{"10.11.4-MariaDB-log", "0", "1"}), store.VerdictFail, "binlog_format"},
		"nine tenths":           {judgeConnections("90", "100"), store.VerdictOK, "90 of the server's 100"},
		"more than nine tenths": {judgeConnections("91", "100"), store.VerdictWarn, "91 of the server's 100"},
	} {
		if c.got.Verdict != c.verdict || !strings.Contains(c.got.Fact, c.fact) || (c.got.Fix == "") != (c.verdict == store.VerdictOK) {
			t.Errorf("%s: got %+v, want %v, %s", name, c.got, c.verdict, c.fact)
		}
	}
}

// denying is a driver of a server that allows nothing.
type denying struct{ driver.Conn }

func (d denying) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (denying) Driver() driver.Driver                          { return nil }
func (denying) Close() error                                   { return nil }

func (denying) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, &pgconn.PgError{Code: "42501", Message: "permission denied for view pg_stat_database"}
}

// A question that the user may not ask leaves a note, which says what takes the right.
func TestCheckWithoutRights(t *testing.T) {
	c := &Conn{db: sql.OpenDB(denying{}), dialect: &postgres}
	defer c.db.Close()
	n := 0
	c.Check(t.Context(), func(f store.Finding) {
		n++
		if f.Verdict != store.VerdictNote || !strings.Contains(f.Fact, "permission denied for view pg_stat_database") ||
			!strings.Contains(f.Fix, "SELECT") {
			t.Errorf("finding without rights: got %+v, want a note, and which right it takes", f)
		}
	}, nil)
	if want := len(postgresQuestions) + 1; n != want {
		t.Errorf("findings: got %d, want %d", n, want)
	}
}

// A server that is down or silent fails, once, in half the time of a caller who waits for four seconds.
func TestCheckOfAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	down, silent := listen(t), listen(t)
	down.Close()
	for name, c := range map[string]struct {
		driver, url string
		dialect     *dialect
		fact        string
	}{
		"PostgreSQL, down":   {"pgx", "postgres://us@" + down.Addr().String(), &postgres, "connection refused"},
		"MySQL, down":        {"mysql", "us@tcp(" + down.Addr().String() + ")/", &mySQL, "connection refused"},
		"PostgreSQL, silent": {"pgx", "postgres://us@" + silent.Addr().String(), &postgres, "no answer within 2s"},
		"MySQL, silent":      {"mysql", "us@tcp(" + silent.Addr().String() + ")/", &mySQL, "no answer within 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := sql.Open(c.driver, c.url)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			var found []store.Finding
			(&Conn{db: db, dialect: c.dialect}).Check(ctx, func(f store.Finding) { found = append(found, f) }, nil)
			if len(found) != 1 || found[0].Check != "server" || found[0].Verdict != store.VerdictFail ||
				!strings.Contains(found[0].Fact, c.fact) || found[0].Fix == "" {
				t.Errorf("findings: got %+v, want that the server fails, alone: %s", found, c.fact)
			}
		})
	}
}

// listen returns a listener that accepts and never answers.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// The difference is what it is at least, whenever the server looked at its clock.
func TestAhead(t *testing.T) {
	sent := time.Now()
	received := sent.Add(5 * time.Second)
	for server, want := range map[time.Duration]time.Duration{
		-time.Second: -time.Second, 0: 0, 5 * time.Second: 0, 7 * time.Second: 2 * time.Second,
	} {
		if got := Ahead(sent.Add(server), sent, received); got != want {
			t.Errorf("Ahead of a clock read %v after the request: got %v, want %v", server, got, want)
		}
	}
}
