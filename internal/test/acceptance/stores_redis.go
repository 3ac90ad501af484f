// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/quorumstore"
	"github.com/asynclock/asynclock-go/store/springredis"
)

// The stores in Redis, and the servers that they are on.
var (
	Miniredis          = Store{"miniredis", Redis | Notified, func(*testing.T) func(*testing.T) *Env { return openMiniredis }}
	RedisAlone         = Store{"redis", Redis | Notified, onServer("ASYNCLOCK_REDIS_URL")}
	RedisSentinel      = Store{"sentinel", Redis | Notified, onServer("ASYNCLOCK_SENTINEL_URL")}
	RedisCluster       = Store{"cluster", Redis | Notified, onServer("ASYNCLOCK_CLUSTER_URL")}
	RedisAloneByTLS    = Store{"redis with the least rights by TLS", Redis | Notified, onServersForLockers(startAlone)}
	RedisSentinelByTLS = Store{"sentinel with the least rights by TLS", Redis | Notified, onServersForLockers(startSentinelSet)}
	RedisClusterByTLS  = Store{"cluster with the least rights by TLS", Redis | Notified, onServersForLockers(startCluster)}
	Quorum             = Store{"a quorum of a server, a Sentinel set and a Cluster", Queues | Notified, onQuorum("ASYNCLOCK_REDIS_URL", "ASYNCLOCK_SENTINEL_URL", "ASYNCLOCK_CLUSTER_URL")}
	SpringRedis        = Store{"springredis", AnyStore | Notified, onServerAsSpring("ASYNCLOCK_REDIS_URL")}
)

func openMiniredis(t *testing.T) *Env {
	t.Helper()
	server := miniredis.RunT(t)
	server.ClockTTL(true) // TTLs run by themselves
	server.Server().SetPreHook(func(peer *miniserver.Peer, command string, _ ...string) bool {
		if command != "CLUSTER" {
			return false
		}
		peer.WriteError("ERR This instance has cluster support disabled") // it claims to be a cluster of one
		return true
	})
	return openRedis(t, address{url: "redis://" + server.Addr()}, "story")
}

// onServer opens places on a server that is running, if there is one.
func onServer(variable string) func(*testing.T) func(*testing.T) *Env {
	return func(t *testing.T) func(*testing.T) *Env {
		t.Helper()
		url := kit.Require(t, variable)
		return func(t *testing.T) *Env {
			t.Helper()
			return openRedis(t, address{url: url}, "story-"+uuid.NewString())
		}
	}
}

// onQuorum opens places on a majority of servers. Each is also looked at in the end, for what is left of the story.
func onQuorum(variables ...string) func(*testing.T) func(*testing.T) *Env {
	return func(t *testing.T) func(*testing.T) *Env {
		t.Helper()
		var open []func(*testing.T) *Env
		for _, variable := range variables {
			open = append(open, onServer(variable)(t))
		}
		return func(t *testing.T) *Env {
			t.Helper()
			env := NewEnv(t)
			var envs []*Env
			for _, openOne := range open {
				envs = append(envs, openOne(t))
			}
			env.Connect = func(c *faultconn.Line) store.Store {
				var nodes []quorumstore.Node
				for i, e := range envs {
					nodes = append(nodes, quorumstore.Node{Name: variables[i], Store: e.Connect(c)})
				}
				quorum, err := quorumstore.New(nodes...)
				if err != nil {
					t.Fatal(err)
				}
				return quorum
			}
			return env
		}
	}
}

// onServerAsSpring opens places that are registries of Java.
func onServerAsSpring(variable string) func(*testing.T) func(*testing.T) *Env {
	return func(t *testing.T) func(*testing.T) *Env {
		t.Helper()
		url := kit.Require(t, variable)
		return func(t *testing.T) *Env {
			t.Helper()
			return openSpring(t, address{url: url}, "story-"+uuid.NewString())
		}
	}
}

func openSpring(t *testing.T, at address, registryKey string) *Env {
	t.Helper()
	env := NewEnv(t)
	connect := func(option rueidis.ClientOption) *springredis.Store {
		store, err := springredis.Open(option, registryKey, springredis.WithLockType(springredis.PubSubLock), springredis.WithoutLogger())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		return store
	}
	env.Connect = func(c *faultconn.Line) store.Store {
		option := redisOption(t, at)
		option.DialCtxFn = c.DialRedis
		return connect(option)
	}
	visitor := connect(redisOption(t, at))
	t.Cleanup(func() { WantNothingListed(t, visitor) })
	return env
}

// RedisBy opens places on a server that is running, whose stores in Redis connect opens: at a URL as
// rueidis.ParseURL reads it, under a prefix, and by a line.
func RedisBy(variable string, connect func(t *testing.T, url, prefix string, line *faultconn.Line) store.Store) func(*testing.T) func(*testing.T) *Env {
	return func(t *testing.T) func(*testing.T) *Env {
		t.Helper()
		open := onServer(variable)(t)
		return func(t *testing.T) *Env {
			t.Helper()
			env := open(t)
			env.Connect = func(line *faultconn.Line) store.Store { return connect(t, env.URL, env.Area, line) }
			return env
		}
	}
}
