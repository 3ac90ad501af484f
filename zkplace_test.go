// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/zkserver"
	"github.com/asynclock/asynclock-go/store/zkstore"
)

// zooKeeperScheme tells a child where its store is.
const zooKeeperScheme = "zookeeper://"

// sessionTimeout is how long a client that is gone keeps its keys: less than
// stories wait for it, and more than a machine stands still.
const sessionTimeout = 4 * time.Second

// onZooKeeper opens places with a root of their own on a server that is running.
func onZooKeeper(t *testing.T) func(*testing.T) *place {
	t.Helper()
	servers := serverURL(t, "ASYNCLOCK_ZOOKEEPER")
	return func(t *testing.T) *place {
		t.Helper()
		p := newPlace(t)
		p.sessions = true
		p.url, p.corner = zooKeeperScheme+servers, "/story/"+uuid.NewString()
		connect := func(c *cable) *zkstore.Store {
			store, err := openZooKeeper(servers, p.corner, c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(store.Close)
			return store
		}
		p.connect = func(c *cable) asynclock.Store { return connect(c) }
		visitor := connect(new(cable))
		t.Cleanup(func() { wantNothingListed(t, visitor) })
		return p
	}
}

// openZooKeeper opens a store whose connection can be cut.
func openZooKeeper(servers, root string, c *cable) (*zkstore.Store, error) {
	return zkstore.Open(strings.Split(servers, ","),
		zkstore.WithRoot(root), zkstore.WithTickTime(zkserver.Tick), zkstore.WithSessionTimeout(sessionTimeout), zkstore.WithShortTTLs(),
		zkstore.WithDialer(func(ctx context.Context, _, addr string) (net.Conn, error) {
			return c.connect(ctx, addr, new(net.Dialer), false)
		}))
}
