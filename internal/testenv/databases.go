// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	_ "github.com/go-sql-driver/mysql" // the driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
)

// A database is a server of SQL that keeps its data in a directory.
type database struct {
	variable string
	driver   string
	need     need

	find    func() (bin string, err error)       // the server's program
	prepare func(bin, dir string) []string       // the command that makes a directory of data
	serve   func(bin, dir, port string) []string // the command of the server
	url     func(addr, name string) string
	name    string // of a database that is there from the start
	stop    syscall.Signal
}

// Nobody minds if a crash of the machine costs the data of a test.
var databases = []database{
	{
		variable: "ASYNCLOCK_POSTGRES_URL", driver: "pgx",
		need: need{"PostgreSQL", []string{"postgresql"}},
		find: findPostgres,
		prepare: func(bin, dir string) []string {
			return []string{filepath.Join(filepath.Dir(bin), "initdb"), "-D", dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"}
		},
		serve: func(bin, dir, port string) []string {
			return []string{bin, "-D", dir, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=400"}
		},
		url:  func(addr, name string) string { return "postgres://postgres@" + addr + "/" + name + "?sslmode=disable" },
		name: "postgres",
		stop: syscall.SIGQUIT, // at once, but without leaving shared memory behind
	},
	{
		variable: "ASYNCLOCK_MYSQL_URL", driver: "mysql",
		need: need{"MariaDB", []string{"mariadb-server"}},
		find: findMariaDB,
		prepare: func(_, dir string) []string {
			return []string{"mariadb-install-db", "--no-defaults", "--datadir=" + dir, "--auth-root-authentication-method=normal", "--skip-test-db"}
		},
		serve: func(bin, dir, port string) []string {
			return []string{
				bin, "--no-defaults", "--datadir=" + dir, "--port=" + port, "--bind-address=127.0.0.1", "--socket=" + filepath.Join(dir, "socket"),
				"--pid-file=" + filepath.Join(dir, "pid"), "--innodb-flush-log-at-trx-commit=2", "--max-connections=400",
			}
		},
		url:  func(addr, name string) string { return "root@tcp(" + addr + ")/" + name },
		name: "mysql",
		stop: syscall.SIGKILL,
	},
}

// findPostgres looks where Debian puts the servers of all versions, for those are not
// in PATH.
func findPostgres() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		if found, err = look("postgres"); err != nil {
			return "", err
		}
	}
	version := func(bin string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(bin)))) // 0 elsewhere
		return n
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) }), err
}

func look(program string) ([]string, error) {
	bin, err := exec.LookPath(program)
	if err != nil {
		return nil, err
	}
	bin, err = filepath.EvalSymlinks(bin) // its neighbours are needed, too
	return []string{bin}, err
}

// findMariaDB looks in the directories for the administrator, too, which may not be in
// PATH.
func findMariaDB() (string, error) {
	if bin, err := exec.LookPath("mariadbd"); err == nil {
		return bin, nil
	}
	return exec.LookPath("/usr/sbin/mariadbd")
}

// missingDatabases says which of them are not here.
func missingDatabases() (missing []need) {
	for _, d := range databases {
		if _, err := d.find(); err != nil {
			missing = append(missing, d.need)
		}
	}
	return missing
}

// launchDatabases makes their data and starts them. They run as somebody who is not
// root, which PostgreSQL insists on, in directories that are theirs.
func (s *servers) launchDatabases(ctx context.Context) error {
	user, err := findUser("postgres", "mysql", "nobody")
	if err != nil {
		return err
	}
	if s.databases, err = os.MkdirTemp("", "asynclock-testenv-sql-"); err != nil {
		return err
	}
	if err := user.own(s.databases); err != nil {
		return err
	}
	for _, d := range databases {
		if err := s.launchDatabase(ctx, d, user); err != nil {
			return fmt.Errorf("%s: %w", d.need.what, err)
		}
	}
	return nil
}

func (s *servers) launchDatabase(ctx context.Context, d database, user dbUser) error {
	bin, err := d.find()
	if err != nil {
		return err
	}
	dir := filepath.Join(s.databases, d.driver)
	prepare := d.prepare(bin, dir)
	cmd := exec.CommandContext(ctx, prepare[0], prepare[1:]...)
	cmd.Dir, cmd.SysProcAttr = s.databases, user.run(serverAttr())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}

	port := s.ports[0]
	one := &server{name: d.driver, addr: address(port), dir: filepath.Join(s.dir, d.driver), done: make(chan struct{})}
	if err := os.MkdirAll(one.dir, 0o700); err != nil {
		return err
	}
	log, err := os.Create(one.logfile())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has its own
	serve := d.serve(bin, dir, strconv.Itoa(port))
	server := exec.Command(serve[0], serve[1:]...)
	server.Dir, server.SysProcAttr = s.databases, user.run(serverAttr())
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		return err
	}
	one.pid, one.kill = server.Process.Pid, func() error { return server.Process.Signal(d.stop) }
	go func() { // ends with the process, and stop waits for it
		_ = server.Wait() // how it ended is in its log
		close(one.done)
	}()
	s.ports = s.ports[1:]
	s.all = append(s.all, one)
	s.sql = append(s.sql, one)
	return nil
}

// testDatabase is the one that tests work in.
const testDatabase = "asynclock"

// awaitDatabases waits until all of them answer, and makes the tests' database.
func (s *servers) awaitDatabases(ctx context.Context) error {
	for i, d := range databases {
		if err := await(ctx, d.need.what, func(ctx context.Context) error { return d.create(ctx, s.sql[i]) }); err != nil {
			return err
		}
	}
	return nil
}

func (d database) create(ctx context.Context, one *server) error {
	if one.hasEnded() {
		return one.ended()
	}
	db, err := sql.Open(d.driver, d.url(one.addr, d.name))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing is left to be said
	_, err = db.ExecContext(ctx, "CREATE DATABASE "+testDatabase)
	return err
}

// databaseEnv is what the tests learn about them.
func (s *servers) databaseEnv() (env []string) {
	for i, one := range s.sql {
		env = append(env, databases[i].variable+"="+databases[i].url(one.addr, testDatabase))
	}
	return env
}

// removeDatabases removes the data of servers that have been stopped.
func (s *servers) removeDatabases() {
	if s.databases != "" {
		os.RemoveAll(s.databases)
	}
}
