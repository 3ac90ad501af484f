// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"flag"
	"iter"
	"slices"
	"strconv"
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

// acquaint writes the epochs of all buckets that have none, as if the server had
// granted keys for long, with TTLs of up to longest.
func (sv *server) acquaint(t testing.TB, longest time.Duration) {
	t.Helper()
	if text, err := sv.Try("INFO", "replication"); err != nil || !strings.Contains(text, "master_replid:") {
		return // miniredis
	}
	const script = `
		local info = redis.call('INFO', 'replication')
		local time = redis.call('TIME')
		local ms = time[1] * 1000 + math.floor(time[2] / 1000)
		local id = string.match(info, 'master_replid:(%x+)')
		for _, key in ipairs(KEYS) do
			redis.call('SET', key, string.format('%s %.0f %s 0 %.0f %.0f', id, ms, ARGV[1], ms + 80000000, ms), 'NX')
		end`
	var write, remove []rueidis.Completed
	for names := range sv.epochs(t) {
		write = append(write, sv.Raw.B().Eval().Script(script).Numkeys(int64(len(names))).Key(names...).Arg(strconv.FormatInt(millis(longest), 10)).Build())
		remove = append(remove, sv.Raw.B().Del().Key(names...).Build())
	}
	for _, result := range sv.Raw.DoMulti(t.Context(), write...) {
		if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
			t.Fatalf("writing epochs: %v", err)
		}
	}
	t.Cleanup(func() { // whoever lists keys has to read these, too
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		sv.Raw.DoMulti(ctx, remove...) // the server may have ended
	})
}

// epochs yields the names of all epochs: as many at a time as one command may name.
func (sv *server) epochs(t testing.TB) iter.Seq[[]string] {
	t.Helper()
	all := make([]string, buckets)
	for i := range all {
		all[i] = sv.epoch(i)
	}
	atOnce := len(all)
	if strings.Contains(sv.Do(t, "INFO", "server"), "_mode:cluster") { // redis_mode, and server_mode in Valkey
		atOnce = 1 // each is in a slot of its own
	}
	return slices.Chunk(all, atOnce)
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

// redisKey is the name of a Redis key of the lock.
func (sv *server) redisKey(key string, kind byte) string {
	return string(appendKey(nil, sv.prefix, bucketOf(key), key, kind))
}
