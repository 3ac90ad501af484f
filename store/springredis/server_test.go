// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"testing"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
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
// are added to its command line.
func ownServer(t *testing.T, args ...string) *server {
	t.Helper()
	own := redistest.Start(t, servers.Config{Args: args})
	return onServer(t, rueidis.ClientOption{InitAddress: []string{own.Addr}})
}

// store opens a store on the server for the test's registry key.
func (sv *server) store(t testing.TB, opts ...Option) *Store {
	t.Helper()
	st, err := Open(sv.Option, sv.registry, append([]Option{WithoutLogger()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// lockKey is the Redis key of the test's lock.
func (sv *server) lockKey(key string) string { return newNames(sv.registry).lock(key) }
