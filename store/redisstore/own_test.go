// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// ownServer starts a real server for one test that would disturb others. args
// are added to its command line.
func ownServer(t *testing.T, args ...string) *server {
	t.Helper()
	return startServer(t, servers.Config{Args: args})
}

func startServer(t *testing.T, c servers.Config) *server {
	t.Helper()
	own := redistest.Start(t, c)
	sv := onServer(t, clientOption(t, c, own.Addr))
	sv.own = own
	return sv
}

// restart starts a server again that was killed. It has no data.
func (sv *server) restart(t *testing.T) {
	t.Helper()
	if err := sv.own.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// startSentinelSet starts a primary, its replica and a sentinel. It returns a client of
// all that, and one of each server with keys.
func startSentinelSet(t *testing.T, c servers.Config) (*server, []*server) {
	t.Helper()
	c.Patience = cmp.Or(c.Patience, 500*time.Millisecond)
	d := redistest.StartSentinel(t, c)
	option := clientOption(t, c, d.Sentinels[0].Addr)
	option.Sentinel = rueidis.SentinelOption{MasterSet: servers.MasterSet, TLSConfig: option.TLSConfig} // for rueidis' own clients
	sv := onServer(t, option)
	sv.whole = d
	return sv, nodesOf(t, c, d)
}

// ownCluster starts three masters for one test. args are added to their command lines.
// It returns a client of the Cluster and one of each node.
func ownCluster(t *testing.T, args ...string) (*server, []*server) {
	t.Helper()
	return startCluster(t, servers.Config{Args: args}, 3)
}

func startCluster(t *testing.T, c servers.Config, masters int) (*server, []*server) {
	t.Helper()
	c.Patience = cmp.Or(c.Patience, time.Second)
	d := redistest.StartCluster(t, c, masters)
	sv := onServer(t, clientOption(t, c, d.Nodes[0].Addr, d.Nodes[masters-1].Addr))
	sv.whole = d
	return sv, nodesOf(t, c, d)
}

// addReplica starts one more node of a Cluster, which is the master's replica.
func (sv *server) addReplica(t *testing.T, master *server) *server {
	t.Helper()
	replica, err := sv.whole.AddReplica(t.Context(), master.own)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(replica.Close)
	return onNode(t, servers.Config{}, replica)
}

func nodesOf(t *testing.T, c servers.Config, d *servers.Deployment) (all []*server) {
	t.Helper()
	for _, node := range d.Nodes {
		all = append(all, onNode(t, c, node))
	}
	return all
}

// onNode is one server, whatever it is part of.
func onNode(t *testing.T, c servers.Config, node *servers.Redis) *server {
	t.Helper()
	option := clientOption(t, c, node.Addr)
	option.ForceSingleClient = true
	sv := onServer(t, option)
	sv.own = node
	return sv
}

// clientOption is a client's of servers that were started so.
func clientOption(t *testing.T, c servers.Config, addrs ...string) rueidis.ClientOption {
	t.Helper()
	config, err := c.Encryption.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	return rueidis.ClientOption{InitAddress: addrs, TLSConfig: config}
}
