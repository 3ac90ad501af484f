// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"context"
	"net"
	"sync"
	"time"
)

// farewell is how long a pool may take to say goodbye to its server.
const farewell = time.Second

// A dialed has the connections of a pool, so that closing it does not wait for a server that does not answer: pgx waits
// for statements that are under way.
type dialed struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	open  map[net.Conn]bool
	ended bool // nothing is opened any more
}

// Dial is the DialFunc of the pool.
func (d *dialed) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		_ = conn.Close() // nobody has used it
		return nil, net.ErrClosed
	}
	d.open[conn] = true
	return &dialedConn{conn, d}, nil
}

// end closes the pool, and cuts what it does not get closed in time.
func (d *dialed) end(closePool func()) {
	timer := time.AfterFunc(farewell, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ended = true
		for conn := range d.open {
			_ = conn.Close() // it is cut
		}
	})
	defer timer.Stop()
	closePool()
}

// A dialedConn is a connection that its dialed knows while it is open.
type dialedConn struct {
	net.Conn

	dialed *dialed
}

// Close closes the connection, and forgets it.
func (c *dialedConn) Close() error {
	c.dialed.mu.Lock()
	delete(c.dialed.open, c.Conn)
	c.dialed.mu.Unlock()
	return c.Conn.Close()
}
