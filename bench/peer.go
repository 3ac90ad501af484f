// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"time"
)

// A peer is one way to lock, with the settings that it is measured with.
type peer struct {
	name    string
	setting string // how it is set up, for the report
	open    func(ctx context.Context, w world) (client, error)
	is      traits
}

// traits say which workloads apply to a peer.
type traits struct {
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
type client interface {
	// worker returns what one goroutine locks with. The call is not timed.
	worker(ctx context.Context) (worker, error)
	close(ctx context.Context) error
}

// openWorker connects the peer for one goroutine.
func (p peer) openWorker(ctx context.Context, w world) (client, worker, error) {
	c, err := p.open(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	work, err := c.worker(ctx)
	return c, work, err
}

// A worker locks for one goroutine.
type worker interface {
	// lock waits for the key.
	lock(ctx context.Context, key string) (held, error)
}

// held is a key that a worker holds.
type held interface {
	Unlock(ctx context.Context) error
}

// A world is the servers that peers connect to.
type world struct {
	redis string
	etcd  string // empty: there is none
	dial  dialFunc
	ttl   time.Duration // of every lock, unless it is renewed
	short bool          // newly started servers grant at once
}

// A dialFunc makes connections whose traffic can be counted. Nil means the usual way.
type dialFunc func(ctx context.Context, address string) (net.Conn, error)

// usualTTL is the TTL of workloads whose rounds need not wait for it.
const usualTTL = 15 * time.Second

// peers returns the peers that can be measured, ours first.
func peers(w world) []peer {
	all := []peer{floorPeer, lowestFloorPeer, asynclockPeer, rueidislockPeer(1), rueidislockPeer(2), redislockPeer, redsyncPeer}
	if w.etcd != "" {
		all = append(all, etcdPeer)
	}
	return all
}

// openClients opens n clients, or none.
func openClients(ctx context.Context, p peer, w world, n int) ([]client, error) {
	var clients []client
	for range n {
		c, err := p.open(ctx, w)
		if err != nil {
			_ = closeClients(ctx, clients) // the first error is the one to report
			return nil, err
		}
		clients = append(clients, c)
	}
	return clients, nil
}

// closeClients closes all of them and returns the first error.
func closeClients(ctx context.Context, clients []client) (first error) {
	for _, c := range clients {
		if err := c.close(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}
