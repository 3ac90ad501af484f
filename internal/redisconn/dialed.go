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
	mu    sync.Mutex
	open  map[*dialedConn]struct{}
	ended chan struct{} // closed when none is open any more; nil until the end
	tried atomic.Bool   // there was a dial
}

// closesWithin is how long rueidis may take to close a connection: a second, if the server says nothing. In a Cluster, its
// Close does not wait for that. If we closed the connection earlier, rueidis would look for the servers again.
const closesWithin = 1200 * time.Millisecond

// dialer dials with dial.
func (d *dialed) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
		d.tried.Store(true)
		conn, err := dial(ctx, address, dialer, encryption)
		if err != nil {
			return nil, &unsent{err}
		}
		c := &dialedConn{Conn: conn, of: d}
		if !d.add(c) {
			_ = conn.Close()
			return nil, rueidis.ErrClosing
		}
		return c, nil
	}
}

func (d *dialed) add(c *dialedConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended != nil {
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

// end refuses what is dialed from now on. It returns when all connections are closed, by rueidis or else by itself.
func (d *dialed) end() {
	d.mu.Lock()
	d.ended = make(chan struct{})
	none := len(d.open) == 0
	d.mu.Unlock()
	if none {
		return
	}
	limit := time.NewTimer(closesWithin)
	defer limit.Stop()
	select {
	case <-d.ended:
	case <-limit.C:
		for _, c := range d.rest() {
			_ = c.Close()
		}
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
	of *dialed
}

// Close closes the connection.
func (c *dialedConn) Close() error {
	c.of.remove(c)
	return c.Conn.Close()
}
