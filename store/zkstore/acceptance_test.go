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
	"github.com/asynclock/asynclock-go/internal/test/servers/zkserver"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore"
)

var stores = []acceptance.Store{
	{Name: "zkstore", Offers: acceptance.Processes | acceptance.Notified, Prepare: onZooKeeper},
	{Name: "zkstore on an ensemble", Offers: acceptance.Processes | acceptance.Notified, Prepare: onEnsemble},
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
	return inZooKeeper(kit.Require(t, "ASYNCLOCK_ZOOKEEPER"))
}

// onEnsemble opens places on three servers that it starts. Clients are at the followers: at
// the leader itself a sync waits for nothing, and in one of some thousand cases Inspect shows
// what was a millisecond before.
func onEnsemble(t *testing.T) func(*testing.T) *acceptance.Env {
	t.Helper()
	kit.Require(t, "ASYNCLOCK_ZOOKEEPER") // where ZooKeeper is wanted at all
	if err := zkserver.Find(); err != nil {
		kit.Skip(t, err.Error())
	}
	e, err := zkserver.StartEnsemble(t.Context(), t.TempDir(), freePorts(t, 3*zkserver.PortsPerServer))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Kill)
	var followers []*zkserver.Server
	kit.Eventually(t, "a leader and two followers", func() bool {
		_, followers, err = e.Roles(t.Context())
		return err == nil && len(followers) == 2
	})
	return inZooKeeper(followers[0].Addr + "," + followers[1].Addr)
}

// freePorts returns ports that nobody listens on. Somebody may come before the servers do;
// then they say so.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // when all are chosen
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// inZooKeeper opens places with a root of their own.
func inZooKeeper(servers string) func(*testing.T) *acceptance.Env {
	return func(t *testing.T) *acceptance.Env {
		t.Helper()
		env := acceptance.NewEnv(t)
		env.Sessions = true
		env.URL, env.Area = servers, "/story/"+uuid.NewString()
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
func openZooKeeper(servers, root string, c *faultconn.Line) (*zkstore.Store, error) {
	return zkstore.Open(strings.Split(servers, ","),
		zkstore.WithRoot(root), zkstore.WithTickTime(zkserver.Tick), zkstore.WithSessionTimeout(sessionTimeout), zkstore.WithShortTTLs(),
		zkstore.WithDialer(func(ctx context.Context, _, addr string) (net.Conn, error) {
			return c.Dial(ctx, addr, new(net.Dialer))
		}))
}
