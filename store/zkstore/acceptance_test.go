// SPDX-License-Identifier: Apache-2.0

package zkstore_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/test/acceptance"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

var stores = []acceptance.Store{
	{Name: "zkstore", Offers: acceptance.Processes | acceptance.Notified, Prepare: onZooKeeper},
	{Name: "zkstore with readers on an ensemble", Offers: acceptance.Processes | acceptance.Notified, Prepare: onEnsemble},
}

func TestStories(t *testing.T) { acceptance.Run(t, stores) }

func TestWhatIsClosedHasNoTimer(t *testing.T) { acceptance.WantNoTimers(t, stores) }

func TestMain(m *testing.M) {
	acceptance.Main(m, func(servers, root string) (store.Store, error) {
		return openZooKeeper(servers, root, new(faultconn.Line))
	})
}

// sessionTimeout is how long a client that is gone keeps its keys: less than
// stories wait for it, and more than a machine stands still.
const sessionTimeout = 4 * time.Second

// onZooKeeper opens places on a server that is running.
func onZooKeeper(t *testing.T) func(*testing.T) *acceptance.Env {
	t.Helper()
	return inZooKeeper(kit.Require(t, "ASYNCLOCK_ZOOKEEPER"), "/story/")
}

// onEnsemble opens places on three servers that it starts. Clients are at the followers: at
// the leader itself a sync waits for nothing, and in one of some thousand cases Inspect shows
// what was a millisecond before. All keys have readers.
func onEnsemble(t *testing.T) func(*testing.T) *acceptance.Env {
	t.Helper()
	kit.Require(t, "ASYNCLOCK_ZOOKEEPER") // where ZooKeeper is wanted at all
	_, followers := zktest.Roles(t, zktest.StartEnsemble(t))
	return inZooKeeper(followers[0].Addr+","+followers[1].Addr, readingArea)
}

// readingArea has the roots below which all keys have readers.
const readingArea = "/reading-story/"

// inZooKeeper opens places with a root of their own in the area.
func inZooKeeper(servers, area string) func(*testing.T) *acceptance.Env {
	return func(t *testing.T) *acceptance.Env {
		t.Helper()
		env := acceptance.NewEnv(t)
		env.Sessions = true
		env.URL, env.Area = servers, area+uuid.NewString()
		connect := func(c *faultconn.Line) *zkstore.Store {
			store, err := openZooKeeper(servers, env.Area, c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(store.Close)
			return store
		}
		env.Connect = func(c *faultconn.Line) store.Store { return connect(c) }
		visitor := connect(new(faultconn.Line))
		t.Cleanup(func() { acceptance.WantNothingListed(t, visitor) })
		return env
	}
}

// openZooKeeper opens a store whose connection can be cut.
func openZooKeeper(addrs, root string, c *faultconn.Line) (*zkstore.Store, error) {
	options := []zkstore.Option{
		zkstore.WithRoot(root), zkstore.WithTickTime(servers.Tick), zkstore.WithSessionTimeout(sessionTimeout), zkstore.WithShortTTLs(),
		zkstore.WithDialer(func(ctx context.Context, _, addr string) (net.Conn, error) {
			return c.Dial(ctx, addr, new(net.Dialer))
		}),
	}
	if strings.HasPrefix(root, readingArea) {
		options = append(options, zkstore.WithReadWriteKeys(func(string) bool { return true }))
	}
	return zkstore.Open(strings.Split(addrs, ","), options...)
}
