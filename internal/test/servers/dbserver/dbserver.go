// SPDX-License-Identifier: Apache-2.0

// Package dbserver starts database servers for tests, with data of their own. They run
// as somebody who is not root, which PostgreSQL insists on.
package dbserver

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// A Kind is a database program.
type Kind struct {
	Name     string   // for people
	Packages []string // that have it, on Debian
	Variable string   // by which tests find a server
	Driver   string   // of database/sql
	System   string   // a database that is there from the start
	// Stop is the signal that ends a server at once and leaves nothing behind but its data.
	Stop syscall.Signal

	// Find finds the server's program.
	Find func() (bin string, err error)
	// URL names a database of a server, as its driver reads it.
	URL func(addr, database string) string

	prepare func(bin, dir string) []string       // the command that makes a directory of data
	serve   func(bin, dir, port string) []string // the command of the server
}

// Kinds are those that stores support. Nobody minds if a crash of the machine costs the
// data of a test; that of the server alone has to leave it.
var Kinds = []*Kind{Postgres, MariaDB}

// Postgres is PostgreSQL.
var Postgres = &Kind{
	Name: "PostgreSQL", Packages: []string{"postgresql"},
	Variable: "ASYNCLOCK_POSTGRES_URL", Driver: "pgx", System: "postgres",
	Stop: syscall.SIGQUIT, // killed, it would leave shared memory
	Find: findPostgres,
	URL: func(addr, database string) string {
		return "postgres://postgres@" + addr + "/" + database + "?sslmode=disable"
	},
	prepare: func(bin, dir string) []string {
		initdb := filepath.Join(filepath.Dir(bin), "initdb")
		return []string{initdb, "-D", dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"}
	},
	serve: func(bin, dir, port string) []string {
		return []string{
			bin, "-D", dir, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
			"-c", "fsync=off", "-c", "max_connections=400",
		}
	},
}

// MariaDB is the server that Debian has of MySQL's protocol.
var MariaDB = &Kind{
	Name: "MariaDB", Packages: []string{"mariadb-server"},
	Variable: "ASYNCLOCK_MYSQL_URL", Driver: "mysql", System: "mysql",
	Stop: syscall.SIGKILL,
	Find: findMariaDB,
	URL:  func(addr, database string) string { return "root@tcp(" + addr + ")/" + database },
	prepare: func(_, dir string) []string {
		return []string{"mariadb-install-db", "--no-defaults", "--datadir=" + dir, "--auth-root-authentication-method=normal", "--skip-test-db"}
	},
	serve: func(bin, dir, port string) []string {
		return []string{
			bin, "--no-defaults", "--datadir=" + dir, "--port=" + port, "--bind-address=127.0.0.1",
			"--socket=" + filepath.Join(dir, "socket"), "--pid-file=" + filepath.Join(dir, "pid"),
			"--innodb-flush-log-at-trx-commit=2", "--max-connections=400",
		}
	},
}

// With returns the same kind with further arguments for the server.
func (k *Kind) With(arguments ...string) *Kind {
	other, serve := *k, k.serve
	other.serve = func(bin, dir, port string) []string { return append(serve(bin, dir, port), arguments...) }
	return &other
}

// findPostgres looks where Debian puts the servers of all versions, for those are not
// in PATH.
func findPostgres() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) }), nil
	}
	bin, err := exec.LookPath("postgres")
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(bin) // its neighbors are needed, too
}

// version reads the version from where Debian puts a program.
func version(bin string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(bin))))
	if err != nil {
		return 0
	}
	return n
}

// findMariaDB looks in the directory for the administrator, too, which may not be in
// PATH.
func findMariaDB() (string, error) {
	if bin, err := exec.LookPath("mariadbd"); err == nil {
		return bin, nil
	}
	return exec.LookPath("/usr/sbin/mariadbd")
}

// Data is a directory for the data of servers, which is theirs.
type Data struct {
	Dir string

	account account
}

// NewData makes one. Whoever asks for it removes Dir in the end.
func NewData() (*Data, error) {
	a, err := findAccount("postgres", "mysql", "nobody")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "asynclock-sql-")
	if err != nil {
		return nil, err
	}
	return &Data{Dir: dir, account: a}, a.own(dir)
}

// Prepare makes the data of a new server, in a directory of Data's with a name, and
// returns the command that runs the server on it; as often as one likes, but not twice
// at a time. Where the system can, the process ends with the thread that starts it.
func (d *Data) Prepare(ctx context.Context, k *Kind, name string, port int) (func() *exec.Cmd, error) {
	bin, err := k.Find()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(d.Dir, name)
	temporary := dir + ".tmp"
	if err := os.Mkdir(temporary, 0o700); err != nil {
		return nil, err
	}
	if err := d.account.own(temporary); err != nil {
		return nil, err
	}
	words := k.prepare(bin, dir)
	prepare := exec.CommandContext(ctx, words[0], words[1:]...)
	d.mine(prepare, temporary)
	if out, err := prepare.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", k.Name, err, out)
	}
	return func() *exec.Cmd {
		words := k.serve(bin, dir, strconv.Itoa(port))
		cmd := exec.Command(words[0], words[1:]...)
		d.mine(cmd, temporary)
		return cmd
	}, nil
}

// mine makes a process the account's, in its directory, with a place of its own for what
// is temporary: MariaDB, when it starts, removes there the tables of others that run, and
// those crash.
func (d *Data) mine(cmd *exec.Cmd, temporary string) {
	cmd.Dir, cmd.Env = d.Dir, append(os.Environ(), "TMPDIR="+temporary)
	proc.Prepare(cmd)
	d.account.run(cmd.SysProcAttr)
}
