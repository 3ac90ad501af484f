// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/sqlconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers/dbserver"
)

// A Server is one that a test may kill.
type Server struct {
	t       *testing.T
	kind    *dbserver.Kind
	Addr    string
	command func() *exec.Cmd
	process *proc.Process
}

// StartServer starts one of the kind that the variable is for, which ends with the test.
func StartServer(t *testing.T, kind *dbserver.Kind) *Server {
	t.Helper()
	kit.Require(t, kind.Variable) // where tests with servers are wanted at all
	data, err := dbserver.NewData()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(data.Dir) })
	port := freePort(t)
	command, err := data.Prepare(t.Context(), kind, "data", port)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, kind: kind, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), command: command}
	s.Start()
	t.Cleanup(s.Kill)
	return s
}

func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 21000 + rand.IntN(3000) // below those for outgoing connections
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil && l.Close() == nil {
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// Start starts it, once more.
func (s *Server) Start() {
	s.t.Helper()
	process, err := proc.Start(s.command())
	if err != nil {
		s.t.Fatal(err)
	}
	s.process = process
}

// Kill ends it at once, as a crash does.
func (s *Server) Kill() {
	_ = s.process.Child.Signal(s.kind.Stop) // fails only if it has ended
	<-s.process.Ended()
}

// Database waits until the server answers, and makes a database.
func (s *Server) Database() Database {
	s.t.Helper()
	admin := OpenDB(s.t, s.kind.Driver, s.kind.URL(s.Addr, s.kind.System))
	s.Await("the server to answer", func() bool {
		_, err := admin.ExecContext(s.t.Context(), "CREATE DATABASE asynclock")
		return err == nil
	})
	db := OpenDB(s.t, s.kind.Driver, s.kind.URL(s.Addr, "asynclock"))
	if s.kind.Driver == dbserver.Postgres.Driver {
		return Postgres(db)
	}
	return MySQL(db)
}

// Await waits until something is so.
func (s *Server) Await(what string, isSo func() bool) {
	s.t.Helper()
	for end := time.Now().Add(Patience); !isSo(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// ServersOfOtherSettings is a test: what a server of MariaDB can be told in ways that
// matter here.
func (s Suite) ServersOfOtherSettings(t *testing.T) {
	server := StartServer(t, dbserver.MariaDB.With("--log-bin", "--binlog-format=STATEMENT", "--innodb-rollback-on-timeout"))
	d := server.Database()
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
	rows := MySQL(OpenDB(t, "mysql", dbserver.MariaDB.URL(server.Addr, "asynclock")+"?binlog_format=ROW"))
	t.Run("a wait in vain ends no transaction of which others were told", func(t *testing.T) {
		s.rowThatIsBeingMade(t, rows)
	})
}
