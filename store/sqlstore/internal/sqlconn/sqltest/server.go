// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// A Server is one that a test may kill.
type Server struct {
	*servers.Database

	t *testing.T
}

// StartServer starts one of a kind, which ends with the test.
func StartServer(t *testing.T, kind *servers.DatabaseKind) *Server {
	t.Helper()
	kit.Require(t, kind.Variable) // where tests with servers are wanted at all
	d, err := kind.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return &Server{d, t}
}

// NewDatabase makes a database.
func (s *Server) NewDatabase() Database {
	s.t.Helper()
	if err := s.Create(s.t.Context(), "asynclock"); err != nil {
		s.t.Fatal(err)
	}
	db := OpenDB(s.t, s.Kind.Driver, s.URL("asynclock"))
	if s.Kind.Driver == servers.Postgres.Driver {
		return Postgres(db)
	}
	return MySQL(db)
}

// serversOfOtherSettings is a test: what a server of MariaDB can be told in ways that matter here.
func (s Suite) serversOfOtherSettings(t *testing.T) {
	server := StartServer(t, servers.MariaDB.With("--log-bin", "--binlog-format=STATEMENT", "--innodb-rollback-on-timeout"))
	d := server.NewDatabase()
	t.Run("a binary log of statements takes no locks", func(t *testing.T) {
		prefix := d.NewPrefix(t)
		if err := s.Migrate(t.Context(), d.Database, prefix); err != nil {
			t.Fatal(err)
		}
		var schema *sqlconn.SchemaError
		if _, err := s.Open(t.Context(), d.Database, prefix); !errors.As(err, &schema) {
			t.Errorf("New: got %v, want a SchemaError", err)
		}
	})
	rows := MySQL(OpenDB(t, "mysql", server.URL("asynclock")+"?binlog_format=ROW"))
	t.Run("a wait in vain ends no transaction of which others were told", func(t *testing.T) {
		s.rowThatIsBeingMade(t, rows)
	})
	t.Run("a read-only server takes no locks", func(t *testing.T) {
		prefix := rows.NewPrefix(t)
		if err := s.Migrate(t.Context(), rows.Database, prefix); err != nil {
			t.Fatal(err)
		}
		rows.Run(t, "SET GLOBAL read_only = 1")
		s.wantReadOnly(t, rows, prefix)
	})
}
