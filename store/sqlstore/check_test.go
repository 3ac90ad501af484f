// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// healthy are servers that lose no commit, with little room for connections.
var healthy = map[string]*servers.DatabaseKind{
	sqlconn.KindPostgres: servers.Postgres.With("-c", "fsync=on", "-c", "max_connections=23"),
	sqlconn.KindMySQL:    servers.MariaDB.With("--innodb-flush-log-at-trx-commit=1", "--log-bin", "--sync-binlog=1", "--binlog-format=ROW"),
}

// checks are the checks of each kind, in their order.
var checks = map[string]string{
	sqlconn.KindPostgres: "server durability connections isolation clock schema notifications",
	sqlconn.KindMySQL:    "server durability connections clock schema notifications",
}

// TestCheckOfHealthyServers also makes them ill, one way after the other.
func TestCheckOfHealthyServers(t *testing.T) {
	t.Parallel()
	for kind, server := range healthy {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := sqltest.StartServer(t, server)
			d := s.NewDatabase()
			st := newTables(t, d)
			found := sqltest.Check(t, st)
			if got := strings.Join(found.Order, " "); got != checks[kind] {
				t.Errorf("checks: got %s, want %s", got, checks[kind])
			}
			for check, f := range found.By {
				if check == "notifications" && kind == sqlconn.KindMySQL {
					found.Want(t, check, store.VerdictNote, "poll", "")
				} else if f.Verdict != store.VerdictOK || f.Fix != "" {
					t.Errorf("a healthy server: got %+v, want it ok", f)
				}
			}
			found.Want(t, "server", store.VerdictOK, map[string]string{sqlconn.KindPostgres: "PostgreSQL 1", sqlconn.KindMySQL: "MariaDB 1"}[kind], "")
			found.Want(t, "schema", store.VerdictOK, "native 2", "")
			crowd(t, s, d, st)
			if kind == sqlconn.KindMySQL {
				for variable, safe := range map[string]string{"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"} {
					d.Run(t, "SET GLOBAL "+variable+" = 0")
					sqltest.Check(t, st).Want(t, "durability", store.VerdictWarn, variable+" = 0:", variable)
					d.Run(t, "SET GLOBAL "+variable+" = "+safe)
				}
				sqltest.Check(t, st).Want(t, "durability", store.VerdictOK, "", "")
			}
		})
	}
}

// crowd takes nearly all connections of a server. Its database has made one already.
func crowd(t *testing.T, s *sqltest.Server, d sqltest.Database, st *Store) {
	t.Helper()
	if d.Kind == sqlconn.KindMySQL {
		d.Run(t, "SET GLOBAL max_connections = 20")
	}
	others := sqltest.OpenDB(t, s.Kind.Driver, s.URL("asynclock"))
	for range 18 {
		other, err := others.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
	}
	sqltest.Check(t, st).Want(t, "connections", store.VerdictWarn, " of the server's 20 connections", "SetMaxOpenConns")
}

// TestCheckOfSettings: what the user's own settings, and those of the tests' servers, can do to locks.
func TestCheckOfSettings(t *testing.T) {
	t.Parallel()
	postgres, mysql := kit.Require(t, "ASYNCLOCK_POSTGRES_URL"), kit.Require(t, "ASYNCLOCK_MYSQL_URL")
	for name, c := range map[string]struct {
		url, later string // the statement is run when the store is open
		options    []Option
		check      string
		verdict    store.Verdict
		fact, fix  string
	}{
		"no fsync":       {postgres, "", nil, "durability", store.VerdictWarn, "fsync = off:", "set fsync"},
		"no sync commit": {postgres + "&synchronous_commit=off", "", nil, "durability", store.VerdictWarn, "synchronous_commit = off:", "synchronous_commit to on"},
		"a late log":     {mysql, "", nil, "durability", store.VerdictWarn, "innodb_flush_log_at_trx_commit = 2:", "to 1"},
		"another level": {
			postgres + "&default_transaction_isolation=serializable", "", nil,
			"isolation", store.VerdictNote, "serializable", "default_transaction_isolation",
		},
		"read-only since": {
			postgres, "SET default_transaction_read_only = on", nil,
			"server", store.VerdictFail, "read-only", "default_transaction_read_only to off",
		},
		"a table dropped since":   {postgres, "DROP TABLE PREFIX_lock CASCADE", nil, "schema", store.VerdictFail, "missing", "Migrate"},
		"a routine dropped since": {mysql, "DROP PROCEDURE PREFIX_inspect", nil, "schema", store.VerdictFail, "a routine is missing", "Migrate"},
		"a clock that is behind":  {mysql + "?timestamp=1700000000", "", nil, "clock", store.VerdictNote, "behind", "NTP"},
		"no notifications":        {postgres, "", []Option{WithoutNotifications()}, "notifications", store.VerdictNote, "WithoutNotifications", "leave that out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sqltest.AtURL(t, c.url)
			d.DB.SetMaxOpenConns(1)
			prefix := d.NewPrefix(t)
			st := newTables(t, d, append(c.options, WithPrefix(prefix))...)
			if c.later != "" {
				d.Run(t, strings.ReplaceAll(c.later, "PREFIX_", prefix))
			}
			sqltest.Check(t, st).Want(t, c.check, c.verdict, c.fact, c.fix)
			if strings.HasPrefix(c.later, "SET ") {
				d.Run(t, "SET default_transaction_read_only = off") // so that the tables can be dropped
			}
		})
	}
}

// TestCheckOfAnotherSchema: programs of another release have migrated since.
func TestCheckOfAnotherSchema(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		st.conn.Tables = otherTables{}
		sqltest.Check(t, st).Want(t, "schema", store.VerdictFail, "another release", "Migrate")
	})
}

// TestCheckOfAnotherDriver: only pgx can listen.
func TestCheckOfAnotherDriver(t *testing.T) {
	t.Parallel()
	d := sqltest.Answering(t, func(string, []sqlconn.Item) ([]sqlconn.Answer, error) { return nil, nil })
	st, err := New(t.Context(), d, WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if got := st.notifications(); got.Verdict != store.VerdictNote || !strings.Contains(got.Fact, "not pgx") {
		t.Errorf("notifications without pgx: got %+v, want a note that says so", got)
	}
}

// TestCheckEndsWithItsContext and reports nothing that it could not find out because of that.
func TestCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	st := newTables(t, sqltest.OnPostgres(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := 0
	st.Check(ctx, func(store.Finding) {
		n++
		cancel()
	})
	if n != 1 {
		t.Errorf("findings until the context was cancelled: got %d, want the first alone", n)
	}
	if got := fmt.Sprint(sqltest.Check(t, new(Store)).Order); got != "[server]" {
		t.Errorf("checks of a store that is only declared: got %s, want [server]", got)
	}
}
