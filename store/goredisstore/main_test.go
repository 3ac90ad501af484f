// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/acceptance"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

func TestMain(m *testing.M) {
	if os.Getenv("ASYNCLOCK_REDIS_URL") == "" { // examples can't skip themselves
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	acceptance.Main(m, openWorker, redistest.Leftover()...)
}

// stories are told on a client of go-redis. The topologies differ in how a client finds its node, and
// not in the protocol, so on most days the Cluster will do, where there is most to find.
func stories() (stores []acceptance.Store) {
	for _, variable := range variables {
		if kit.Nightly() || variable == "ASYNCLOCK_CLUSTER_URL" {
			stores = append(stores, acceptance.Store{
				Name: variable, Offers: acceptance.Redis | acceptance.Notified, Prepare: acceptance.RedisBy(variable, connect),
			})
		}
	}
	return stores
}

func TestStories(t *testing.T) { acceptance.Run(t, stories()) }

func TestWhatIsClosedHasNoTimer(t *testing.T) { acceptance.WantNoTimers(t, stories()) }

// universal are the options of a client that New accepts.
func universal(option rueidis.ClientOption) *redis.UniversalOptions {
	return &redis.UniversalOptions{Addrs: option.InitAddress, MasterName: option.Sentinel.MasterSet}
}

// connect opens a store on a client of its own, by a line that can be cut.
func connect(t *testing.T, url, prefix string, line *faultconn.Line) store.Store {
	t.Helper()
	option, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	options := universal(option)
	options.Dialer = func(ctx context.Context, _, address string) (net.Conn, error) {
		return line.DialRedis(ctx, address, new(net.Dialer), nil)
	}
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { client.Close() })
	st := newStore(t, client, redisstore.WithPrefix(prefix))
	warmUp(t, st)
	return st
}

// warmUp makes a store connect to all nodes. That may take longer here than a first request waits for its inbox.
func warmUp(t *testing.T, st *redisstore.Store) {
	t.Helper()
	s, err := st.Open("warm", func(store.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		s.Inspect(t.Context(), fmt.Sprint("key", i)) //nolint:errcheck // the stories see what does not work
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// openWorker opens the store of another process, which is killed in the end.
func openWorker(url, prefix string) (store.Store, error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return New(redis.NewUniversalClient(universal(option)), redisstore.WithPrefix(prefix), redisstore.WithoutFailoverGrace(), redisstore.WithoutLogger())
}
