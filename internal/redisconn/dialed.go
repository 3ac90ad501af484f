// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// dialed are the connections that a Conn's clients have dialed and not closed. rueidis closes a client without those
// that it dials meanwhile: for a caller, for a subscription, or to look where the servers of a Cluster are. It keeps such
// a connection, and its goroutines, for good.
type dialed struct {
	mu     sync.Mutex
	open   map[*dialedConn]struct{}
	ended  chan struct{}      // closed when none is open any more; nil until the end
	life   context.Context    //nolint:containedctx // of dials, which ends closesWithin after the end, at the latest
	giveUp context.CancelFunc // ends life
	tried  atomic.Bool        // there was a dial
}

// closesWithin is how long rueidis may take to close a connection: a second, if the server says nothing. In a Cluster, its
// Close does not wait for that. If we closed the connection earlier, rueidis would look for the servers again. A dial
// has the same time, because rueidis' Close may wait for it: a sentinel that says nothing to TLS takes seconds.
const closesWithin = 1200 * time.Millisecond

// dialer dials with dial.
func (d *dialed) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
		d.tried.Store(true)
		life := d.begin()
		if life == nil {
			return nil, rueidis.ErrClosing
		}
		ctx, cancel := context.WithCancel(ctx)
		defer context.AfterFunc(life, cancel)()
		conn, err := dial(ctx, address, dialer, encryption)
		if err != nil {
			cancel()
			if life.Err() != nil {
				return nil, rueidis.ErrClosing // after which it does not look for the servers
			}
			return nil, &unsent{err}
		}
		c := &dialedConn{Conn: conn, of: d, cancel: cancel}
		if !d.add(c) {
			cancel()
			_ = conn.Close()
			return nil, rueidis.ErrClosing
		}
		return c, nil
	}
}

// begin returns the context that ends a dial, or nil after the end.
func (d *dialed) begin() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended != nil {
		return nil
	}
	d.startLocked()
	return d.life
}

func (d *dialed) startLocked() {
	if d.life == nil {
		d.life, d.giveUp = context.WithCancel(context.Background())
	}
}

func (d *dialed) add(c *dialedConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended != nil || d.life.Err() != nil {
		return false
	}
	if d.open == nil {
		d.open = make(map[*dialedConn]struct{})
	}
	d.open[c] = struct{}{}
	return true
}

func (d *dialed) remove(c *dialedConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.open[c]; !ok {
		return
	}
	if delete(d.open, c); d.ended != nil && len(d.open) == 0 {
		close(d.ended)
	}
}

// end closes clients, and refuses what is dialed from now on. It returns when all connections are closed, by rueidis or
// else by itself, and clients are. It does not wait for dials itself, because a dialer of the application's may ignore that
// its context ends.
func (d *dialed) end(clients ...rueidis.Client) {
	var closing sync.WaitGroup
	for _, client := range clients {
		closing.Go(client.Close) // which waits for silent servers and sentinels until their connections are closed
	}
	d.mu.Lock()
	d.startLocked()
	d.ended = make(chan struct{})
	none := len(d.open) == 0
	d.mu.Unlock()
	defer d.giveUp()
	defer time.AfterFunc(closesWithin, d.giveUp).Stop()
	if !none {
		select {
		case <-d.ended:
		case <-d.life.Done():
			for _, c := range d.rest() {
				_ = c.Close()
			}
		}
	}
	closing.Wait()
}

// abandon ends the dials under way, refuses further ones, and closes all connections: nobody needs the clients any more,
// which may not be there yet.
func (d *dialed) abandon() {
	d.mu.Lock()
	d.startLocked()
	d.mu.Unlock()
	d.giveUp()
	for _, c := range d.rest() {
		_ = c.Close()
	}
}

// rest returns the connections that are still open.
func (d *dialed) rest() []*dialedConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.open))
}

// A dialedConn is a connection until it is closed.
type dialedConn struct {
	net.Conn
	of     *dialed
	cancel context.CancelFunc // ends the context of its dial, which a dialer may have tied it to
}

// Close closes the connection.
func (c *dialedConn) Close() error {
	c.of.remove(c)
	defer c.cancel()
	return c.Conn.Close()
}
