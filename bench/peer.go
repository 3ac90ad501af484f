// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A peer is one way to lock, with the settings that it is measured with.
type peer struct {
	name    string
	setting string // how it is set up, for the report
	open    func(w world) *client
	is      traits
	needs   string // a key of world.missing
	recipe  string // in Java: the name of what it opens there
}

// traits say which workloads apply to a peer.
type traits struct {
	own    bool // a failure is a fault of this repository
	floor  bool // it only sends what every lock must send, and can't wait
	lowest bool // it is the floor of callers that are alone
	renews bool // by itself, as long as a lock is held
	etcd   bool
	holds  int // the most keys that it has to hold; 0: any number
	// settles is how long a waiter must have waited until it is notified of the unlock without
	// delay, if that is longer than with other peers.
	settles time.Duration
}

// A client stands for one process: it has connections of its own.
type client struct {
	lock  locker                          // of all its goroutines
	fork  func() locker                   // instead of lock: one for each goroutine
	locks *asynclock.Client               // nil for others
	close func(ctx context.Context) error // ends the connections
}

// A locker locks for one goroutine. It waits for the key.
type locker func(ctx context.Context, key string) (held, error)

// held is a key that a goroutine holds.
type held interface {
	Unlock(ctx context.Context) error
}

// unlocking is held as a function.
type unlocking func(ctx context.Context) error

// Unlock calls the function.
func (u unlocking) Unlock(ctx context.Context) error { return u(ctx) }

// worker returns what one goroutine locks with.
func (c *client) worker() locker {
	if c.fork != nil {
		return c.fork()
	}
	return c.lock
}

// pair locks and unlocks.
func (lock locker) pair(ctx context.Context, key string) {
	check(must(lock(ctx, key)).Unlock(ctx))
}

// lease returns what asynclock has locked, and no nil pointer in an interface.
func lease[T held](l T, err error) (held, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// A world is the servers that peers connect to, and the JVM of those in Java.
type world struct {
	redis     string
	servers   []string // of a quorum; the first one is redis
	etcd      string   // empty: there is none
	zooKeeper string
	java      *jvm
	missing   map[string]string // reasons, by what is missing: "etcd", "redisson", "curator"
	dial      dialFunc
	ttl       time.Duration // of every lock, unless it is renewed
	short     bool          // newly started servers grant at once
}

// A dialFunc makes connections whose traffic can be counted. Nil means the usual way.
type dialFunc func(ctx context.Context, address string) (net.Conn, error)

// usualTTL is the TTL of workloads whose rounds need not wait for it.
const usualTTL = 15 * time.Second

// locks are the peers that lock a key, ours first.
var locks = []peer{floorPeer, lowestFloorPeer, asynclockPeer, rueidislockPeer(1), rueidislockPeer(2), redislockPeer, redsyncPeer, etcdPeer}

// among returns the peers whose names contain one of the parts of a list.
func among(all []peer, list string) (some []peer) {
	for _, p := range all {
		if slices.ContainsFunc(strings.Split(list, ","), func(part string) bool { return strings.Contains(p.name, part) }) {
			some = append(some, p)
		}
	}
	return some
}

// client opens another client of the stage's peer.
func (s *stage) client() *client {
	c := s.peer.open(s.world)
	s.after(c.close)
	return c
}

// asynclock opens a client of ours, whatever the peer is.
func (s *stage) asynclock() *asynclock.Client {
	c := openAsynclock(s.world)
	s.after(c.close)
	return c.locks
}

// workers opens clients with so many goroutines each, and returns what these lock with.
func (s *stage) workers(clients, each int) (all []locker) {
	for range clients {
		c := s.client()
		for range each {
			all = append(all, c.worker())
		}
	}
	return all
}

// until asks again and again until it is so.
func until(ctx context.Context, is func() bool) {
	for !is() {
		check(ctx.Err())
		time.Sleep(time.Millisecond)
	}
}
