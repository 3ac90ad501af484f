// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/redistest"
)

// What rueidis' cluster client puts off, as in store/redisstore.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
	)
}

// A server is where a test's store is, and a client to look behind its back.
type server struct {
	option   rueidis.ClientOption
	raw      rueidis.Client
	registry string // the test's own
	// pass lets time go by on the server.
	pass func(time.Duration)
}

// onEachServer runs a test on miniredis, whose clock it can set, and on the real
// server that the environment names.
func onEachServer(t *testing.T, test func(*testing.T, *server)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		test(t, onMiniredis(t))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL")))
	})
}

func onMiniredis(t testing.TB) *server {
	t.Helper()
	option, pass := redistest.Miniredis(t)
	sv := onServer(t, option)
	sv.pass = pass
	return sv
}

func onServer(t testing.TB, option rueidis.ClientOption) *server {
	t.Helper()
	raw, err := rueidis.NewClient(redisconn.ForLocks(option))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	return &server{option: option, raw: raw, registry: "test-" + uuid.NewString(), pass: time.Sleep}
}

// ownServer starts a real server for one test that would disturb others. args
// are added to its command line. It listens on a socket of the file system, where
// no port can be taken.
func ownServer(t *testing.T, args ...string) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") //nolint:usetesting // its name may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	args = append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir}, args...)
	if _, err := redistest.Start(t, "unix", socket, "redis-server", args...); err != nil {
		t.Fatal(err)
	}
	option, err := rueidis.ParseURL("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	return onServer(t, option)
}

// store opens a store on the server for the test's registry key.
func (sv *server) store(t testing.TB, opts ...Option) *Store {
	t.Helper()
	st, err := Open(sv.option, sv.registry, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// do sends a command as redis-cli would and returns the reply as text.
func (sv *server) do(t testing.TB, args ...string) string {
	t.Helper()
	text, err := redistest.Ask(sv.raw, args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return text
}

// number is do for replies that are integers.
func (sv *server) number(t testing.TB, args ...string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(sv.do(t, args...), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// lockKey is the Redis key of the test's lock.
func (sv *server) lockKey(key string) string { return newNames(sv.registry).lock(key) }

// eventually waits until what is true, which takes long only if it never is.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
