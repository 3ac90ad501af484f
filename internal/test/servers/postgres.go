// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"cmp"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Postgres is PostgreSQL.
var Postgres = &DatabaseKind{
	Name: "PostgreSQL", Packages: []string{"postgresql"},
	Variable: "ASYNCLOCK_POSTGRES_URL", Driver: "pgx", System: "postgres",
	Find:  findPostgres,
	quit:  syscall.SIGQUIT, // killed, it would leave shared memory
	where: "SHOW data_directory",
	url: func(addr, database string) string {
		return "postgres://postgres@" + addr + "/" + database + "?sslmode=disable"
	},
	client: func(bin, addr string) []string {
		host, port, _ := net.SplitHostPort(addr)
		return []string{filepath.Join(filepath.Dir(bin), "psql"), "-h", host, "-p", port, "-U", "postgres", "-wAtXqc"}
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
