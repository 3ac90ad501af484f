// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

func TestMain(m *testing.M) {
	kit.InParallel(16)  // they wait for servers, and for what expires there
	if !kit.Nightly() { // a hundred by night; by day others need the machine, too
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, redistest.Leftover()...)
}

// A server is where a test's store is, under a prefix of the test's own.
type server struct {
	*redistest.Server

	prefix string
	own    *servers.Redis      // nil, unless it is one server of the test's own
	whole  *servers.Deployment // nil, unless it is several
}

func withPrefix(sv *redistest.Server) *server {
	return &server{Server: sv, prefix: "test-" + uuid.NewString()}
}

func onEachServer(t *testing.T, test func(*testing.T, *server)) {
	t.Helper()
	redistest.OnEachServer(t, func(t *testing.T, sv *redistest.Server) { test(t, withPrefix(sv)) })
}

func onOneServer(t *testing.T, test func(*testing.T, *server)) {
	t.Helper()
	redistest.OnOneServer(t, func(t *testing.T, sv *redistest.Server) { test(t, withPrefix(sv)) })
}

func onMiniredis(t testing.TB) *server {
	t.Helper()
	return withPrefix(redistest.OnMiniredis(t))
}

func onServer(t testing.TB, option rueidis.ClientOption) *server {
	t.Helper()
	return withPrefix(redistest.OnServer(t, option))
}

// store opens a store on the server under the test's prefix, to which the server
// is no stranger: one that was just started would grant nothing for a while.
func (sv *server) store(t testing.TB, opts ...Option) *Store {
	t.Helper()
	sv.acquaint(t, long)
	return sv.newStore(t, opts...)
}

// acquaint is Acquaint for the test's prefix.
func (sv *server) acquaint(t testing.TB, longest time.Duration) {
	t.Helper()
	sv.Acquaint(t, sv.prefix, longest)
}

// epoch is the name of the Redis key of a bucket's epoch.
func (sv *server) epoch(bucket int) string { return string(appendEpoch(nil, sv.prefix, bucket)) }

// newStore is store without that.
func (sv *server) newStore(t testing.TB, opts ...Option) *Store {
	t.Helper()
	st, err := Open(sv.Option, append([]Option{WithPrefix(sv.prefix), WithoutLogger()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// as makes a user on the server, or on these nodes of it, and returns the server as that user sees it. The
// user has the keys and channels of the test, and the rights of these words, which may also take a right away.
func (sv *server) as(t *testing.T, name, rights string, nodes ...*server) *server {
	t.Helper()
	password := "pa55word-of-" + name
	if nodes == nil {
		nodes = []*server{sv}
	}
	for _, node := range nodes {
		words := []string{"ACL", "SETUSER", name, "on", ">" + password, "resetkeys", "resetchannels", "-@all", "~" + sv.prefix + ":{*", "&" + sv.prefix + ":*"}
		node.Do(t, append(words, node.known(t, strings.Fields(rights))...)...)
		node.Do(t, "ACL", "LOG", "RESET")
	}
	user := *sv
	user.Option.Username, user.Option.Password = name, password
	return &user
}

// redisKey is the name of a Redis key of the lock.
func (sv *server) redisKey(key string, kind byte) string {
	return string(appendKey(nil, sv.prefix, bucketOf(key), key, kind))
}
