// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"net"
	"os/exec"
	"path/filepath"
)

// MariaDB is the server that Debian has of MySQL's protocol.
var MariaDB = &DatabaseKind{
	Name: "MariaDB", Packages: []string{"mariadb-server"},
	Variable: "ASYNCLOCK_MYSQL_URL", Driver: "mysql", System: "mysql",
	Find:  findMariaDB,
	where: "SELECT @@datadir",
	url:   func(addr, database string) string { return "root@tcp(" + addr + ")/" + database },
	client: func(_, addr string) []string {
		host, port, _ := net.SplitHostPort(addr)
		return []string{"mariadb", "--no-defaults", "-h", host, "-P", port, "-u", "root", "-NBe"}
	},
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

// findMariaDB looks in the directory for the administrator, too, which may not be in
// PATH.
func findMariaDB() (string, error) {
	if bin, err := exec.LookPath("mariadbd"); err == nil {
		return bin, nil
	}
	return exec.LookPath("/usr/sbin/mariadbd")
}
