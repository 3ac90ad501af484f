// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

func TestMain(m *testing.M) {
	kit.InParallel(16) // they wait for servers, and for what expires there
	goleak.VerifyTestMain(m, redistest.Leftover()...)
}

// A server is where a test's store is, for a registry key of the test's own.
type server struct {
	*redistest.Server

	registry string
}

func withRegistry(sv *redistest.Server) *server { return &server{sv, "test-" + uuid.NewString()} }

func onEachServer(t *testing.T, test func(*testing.T, *server)) {
	t.Helper()
	redistest.OnEachServer(t, func(t *testing.T, sv *redistest.Server) { test(t, withRegistry(sv)) })
}

func onMiniredis(t testing.TB) *server {
	t.Helper()
	return withRegistry(redistest.OnMiniredis(t))
}

func onServer(t testing.TB, option rueidis.ClientOption) *server {
	t.Helper()
	return withRegistry(redistest.OnServer(t, option))
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
	st, err := Open(sv.Option, sv.registry, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// lockKey is the Redis key of the test's lock.
func (sv *server) lockKey(key string) string { return newNames(sv.registry).lock(key) }
