// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

func TestMain(m *testing.M) {
	kit.InParallel(8)
	goleak.VerifyTestMain(m, redistest.Leftover()...)
}

// A server is one of the environment, as a URL.
type server func(testing.TB) string

func redisServer(t testing.TB) string {
	t.Helper()
	return kit.Require(t, "ASYNCLOCK_REDIS_URL")
}

func postgresServer(t testing.TB) string {
	t.Helper()
	return kit.Require(t, "ASYNCLOCK_POSTGRES_URL")
}

// mysqlServer is spelled user@tcp(host:port)/database in the environment, as go-sql-driver does.
func mysqlServer(t testing.TB) string {
	t.Helper()
	return "mysql://" + strings.NewReplacer("tcp(", "", ")", "").Replace(kit.Require(t, "ASYNCLOCK_MYSQL_URL"))
}

func zookeeperServer(t testing.TB) string {
	t.Helper()
	return "zk://" + kit.Require(t, "ASYNCLOCK_ZOOKEEPER")
}

// with adds parameters to a URL.
func with(url, parameters string) string {
	if strings.Contains(url, "?") {
		return url + "&" + parameters
	}
	return url + "?" + parameters
}
