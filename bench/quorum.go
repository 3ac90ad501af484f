// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/quorumstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

const (
	// oneServerName is the floor of a quorum: asynclock on the first of its servers.
	oneServerName = "one server"
	// quorumClients want the hot key.
	quorumClients = 16
	// quorumKeys are taken in turn. Each server is the first to be asked for some of them.
	quorumKeys = 64
	// quorumFar is a round trip to the server that is far away.
	quorumFar = 20 * time.Millisecond
)

// quorumFamily is locks on a majority of servers.
func quorumFamily(size sizes) (all []workload) {
	away := size
	away.operations /= 5 // the round trips take the time
	crowded := 10 * size.window
	for _, servers := range []int{3, 5} {
		all = append(all, workload{
			name: fmt.Sprintf("quorum %d", servers), title: fmt.Sprintf("A majority of %d servers: Lock and Unlock of %d keys in turn, one goroutine, nobody else", servers, quorumKeys),
			metrics: append(slices.Clone(latencies), metric{Name: "commands", Unit: "per lock"}),
			targets: []target{{of: redsyncPeer.name, limit: 1.2}},
			servers: servers,
			prepare: withCommands(size, alone(size, keysInTurn)),
		})
	}
	all = append(all, workload{
		name: "quorum far", title: fmt.Sprintf("The same of 3 servers, of which the last is %v away, there and back", quorumFar), metrics: latencies,
		targets: []target{{of: redsyncPeer.name, limit: 1}},
		servers: 3,
		prepare: func(ctx context.Context, s *stage) round {
			s.dial = farTo(s.servers[len(s.servers)-1], quorumFar)
			return alone(away, keysInTurn)(ctx, s)
		},
	}, workload{
		name: "quorum hot", title: fmt.Sprintf("A majority of 3 servers: %d clients with a goroutine each want one key, hold it for no time and give it back, for %v", quorumClients, crowded),
		metrics: []metric{
			{"rate", "locks/s", true},
			{Name: "p50", Unit: "ms"},
			{Name: "p99", Unit: "ms"},
			{Name: "fewest", Unit: "of a client"},
			{Name: "most", Unit: "of a client"},
			{Name: "stuck", Unit: "waits"},
		},
		peers:   quorumPeers[:3],
		targets: []target{{of: redsyncPeer.name, limit: 1}, {metric: 5, limit: 0, always: true}},
		absent:  "redsync, fail fast: its Unlock fails among many clients",
		servers: 3,
		prepare: hotQuorum(crowded),
	})
	for i := range all {
		all[i].base = redsyncPeer.name
		if all[i].peers == nil {
			all[i].peers = quorumPeers
		}
	}
	return all
}

var quorumPeers = []peer{
	{name: oneServerName, setting: "asynclock on the first server, redisstore.Open and asynclock.New without options", open: asynclockPeer.open, is: asynclockPeer.is},
	{name: asynclockPeer.name, setting: "quorumstore.New of a redisstore.Open for each server, asynclock.New without options", open: openQuorum, is: asynclockPeer.is},
	redsyncOfMany(redsyncPeer.name, "each server has a pool", redsync.WithFailFast(false)),
	redsyncOfMany(redsyncPeer.name+", fail fast", "it does not wait for answers beyond a majority", redsync.WithFailFast(true)),
}

// redsyncOfMany is redsync on all servers of the workload.
func redsyncOfMany(name, setting string, option redsync.Option) peer {
	open := func(w world) *client { return openRedsync(w, w.servers, option) }
	return peer{name: name, setting: redsyncPeer.setting, open: open}.and("; " + setting)
}

// openedStores are those of a quorum.
type openedStores []*redisstore.Store

// Close closes all of them.
func (all openedStores) Close() {
	for _, s := range all {
		s.Close()
	}
}

// openQuorum opens a client of ours on a majority of the servers.
func openQuorum(w world) *client {
	var nodes []quorumstore.Node
	var opened openedStores
	for i, address := range w.servers {
		s := openStore(w.at(address))
		nodes, opened = append(nodes, quorumstore.Node{Name: strconv.Itoa(i), Store: s}), append(opened, s)
	}
	return clientOver(must(quorumstore.New(nodes...)), opened, asynclock.WithTTL(w.ttl))
}

// at is the world of one of the servers.
func (w world) at(redis string) world {
	w.redis = redis
	return w
}

// farTo is a dialFunc for which only one server is far away.
func farTo(distant string, delay time.Duration) dialFunc {
	away := far(delay)
	return func(ctx context.Context, address string) (net.Conn, error) {
		if address == distant {
			return away(ctx, address)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
}

// keysInTurn is the same few keys, over and over.
func keysInTurn(s *stage) func(int) string {
	var used atomic.Int64
	return func(int) string { return s.key + ":" + strconv.FormatInt(used.Add(1)%quorumKeys, 10) }
}

// withCommands adds a metric: the commands that a client sends for one lock. That is another client, which is not timed.
func withCommands(size sizes, of prepare) prepare {
	return func(ctx context.Context, s *stage) round {
		one, m := of(ctx, s), new(meter)
		s.dial = m.dial
		lock, key := s.client().worker(), keysInTurn(s)
		return func(ctx context.Context) []float64 {
			values, before := one(ctx), m.commands()
			for range size.operations {
				lock.pair(ctx, key(0))
			}
			return append(values, float64(m.commands()-before)/float64(size.operations))
		}
	}
}

// hotQuorum is clients that want one key.
func hotQuorum(window time.Duration) prepare {
	return func(_ context.Context, s *stage) round {
		workers := s.workers(quorumClients, 1)
		return func(ctx context.Context) []float64 {
			waits := crowdOf(ctx, workers, window, 0, func(*rand.Rand) string { return s.key })
			counts := make([]float64, len(waits))
			for i := range waits {
				counts[i] = float64(len(waits[i]))
			}
			all := summarizeWaits(slices.Concat(waits...), window)
			return []float64{all[0], all[1], all[2], slices.Min(counts), slices.Max(counts), all[5]}
		}
	}
}
