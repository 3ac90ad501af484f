// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/redis/rueidis"
)

// dialed are the connections that a Conn's clients have dialed and not closed. rueidis closes a client without those
// that it dials meanwhile: for a caller, for a subscription, or to look where the servers of a Cluster are. It keeps such
// a connection, and its goroutines, for good.
type dialed struct {
	mu    sync.Mutex
	open  map[*dialedConn]struct{}
	ended bool
}

// dialer dials with dial.
func (d *dialed) dialer(dial dialFunc, delayed bool) dialFunc {
	return func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, address, dialer, encryption)
		if err != nil {
			return nil, err
		}
		if delayed {
			delayWrites(conn)
		}
		c := &dialedConn{Conn: conn, of: d}
		if !d.add(c) {
			_ = conn.Close()
			return nil, rueidis.ErrClosing
		}
		return c, nil
	}
}

// delayWrites does what DisableTCPNoDelay asks for. rueidis does it to connections only that it knows the type of.
func delayWrites(conn net.Conn) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if plain, ok := conn.(*net.TCPConn); ok {
		_ = plain.SetNoDelay(false)
	}
}

func (d *dialed) add(c *dialedConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
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
	delete(d.open, c)
}

// end closes what is open, and what is dialed from now on.
func (d *dialed) end() {
	d.mu.Lock()
	d.ended = true
	rest := d.open
	d.open = nil
	d.mu.Unlock()
	for c := range rest {
		_ = c.Conn.Close()
	}
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
