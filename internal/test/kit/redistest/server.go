// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// A Server is where a test's store is, and a client to look behind its back.
type Server struct {
	Option rueidis.ClientOption // for a store
	Raw    rueidis.Client
	// Pass lets time go by on the server.
	Pass func(time.Duration)
}

// OnEachServer runs a parallel test on miniredis, whose clock it can set, and on the real
// server that the environment names.
func OnEachServer(t *testing.T, test func(*testing.T, *Server)) {
	t.Helper()
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		test(t, OnMiniredis(t))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, OnServer(t, Option(t, "ASYNCLOCK_REDIS_URL")))
	})
}

// OnOneServer runs a parallel test on the real server that the environment names, and on miniredis if it names none. It is
// for tests that take the server's time: miniredis takes ten times as much.
func OnOneServer(t *testing.T, test func(*testing.T, *Server)) {
	t.Helper()
	t.Parallel()
	if os.Getenv("ASYNCLOCK_REDIS_URL") == "" {
		test(t, OnMiniredis(t))
		return
	}
	test(t, OnServer(t, Option(t, "ASYNCLOCK_REDIS_URL")))
}

// OnMiniredis is a server in this process. Its clock only moves when Pass is called.
func OnMiniredis(t testing.TB) *Server {
	t.Helper()
	option, pass := runMiniredis(t)
	sv := OnServer(t, option)
	sv.Pass = pass
	return sv
}

// OnServer is the real server, or the deployment, that option leads to.
func OnServer(t testing.TB, option rueidis.ClientOption) *Server {
	t.Helper()
	raw, err := rueidis.NewClient(redisconn.ForLocks(option))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	return &Server{Option: option, Raw: raw, Pass: time.Sleep}
}

// Do sends a command as redis-cli would and returns the reply as text, which is
// empty for nil. An error fails the test.
func (sv *Server) Do(t testing.TB, words ...string) string {
	t.Helper()
	text, err := sv.Try(words...)
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return text
}

// Try is [Ask] of this server.
func (sv *Server) Try(words ...string) (string, error) { return Ask(sv.Raw, words...) }

// Number is Do for replies that are integers.
func (sv *Server) Number(t testing.TB, words ...string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(sv.Do(t, words...), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
