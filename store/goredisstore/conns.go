// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// conns are the connections of the clients that New makes.
type conns struct {
	dials chan struct{} // has an element for each dial under way

	mu    sync.Mutex
	open  map[string][]*conn // by address
	ended bool
}

func newConns() *conns { return &conns{dials: make(chan struct{}, dialsAtOnce)} }

// A dialNetworkFunc is the type of redis.Options.Dialer.
type dialNetworkFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// dialer dials with dial, within the limit.
func (c *conns) dialer(dial dialNetworkFunc, limit time.Duration) dialNetworkFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		messages, isForMessages := ctx.Value(forMessages{}).(*atomic.Bool)
		if isForMessages && messages.Swap(true) {
			return nil, errOneDial
		}
		dialed, err := dialWithin(ctx, limit, c.dials, func(ctx context.Context) (net.Conn, error) { return dial(ctx, network, address) })
		if err != nil {
			return nil, &unsent{err}
		}
		one := &conn{Conn: dialed, address: address, of: c, messages: isForMessages}
		one.wrote.Store(now())
		one.read.Store(one.wrote.Load())
		if !c.add(one) {
			_ = dialed.Close()
			return nil, redis.ErrClosed
		}
		return one, nil
	}
}

func (c *conns) add(one *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[string][]*conn)
	}
	if !c.ended {
		c.open[one.address] = append(c.open[one.address], one)
	}
	return !c.ended
}

func (c *conns) remove(one *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := slices.DeleteFunc(c.open[one.address], func(other *conn) bool { return other == one })
	if c.open[one.address] = rest; len(rest) == 0 {
		delete(c.open, one.address)
	}
}

// end closes all, also what is dialed from now on.
func (c *conns) end() {
	c.mu.Lock()
	c.ended = true
	var open []*conn
	for _, some := range c.open {
		open = append(open, some...)
	}
	c.mu.Unlock()
	for _, one := range open {
		_ = one.Close() // fails only if it is closed
	}
}

// forMessages is the key of an *atomic.Bool in the context of a dial for messages. There is one dial for each of these.
type forMessages struct{}

// suspectAfter is how long an answer may take before the server's other connections are doubted.
const suspectAfter = 500 * time.Millisecond

// doubt closes idle connections to a server while another one waits for an answer for too long. It closes those that have
// not been read since that call began. go-redis would hand them out one by one, each to a call that may wait for its whole
// time. If one was alive, that costs a dial.
func (c *conns) doubt(address string) {
	overdue := now() - int64(suspectAfter)
	since, waits := int64(math.MinInt64), false
	c.mu.Lock()
	for _, one := range c.open[address] {
		if wrote := one.wrote.Load(); wrote <= overdue && !one.isIdle() {
			since, waits = max(since, wrote), true
		}
	}
	c.mu.Unlock()
	if waits {
		c.drop(address, since)
	}
}

// drop closes the connections to a server that are idle, and have not been read since.
func (c *conns) drop(address string, since int64) {
	var idle []*conn
	c.mu.Lock()
	for _, one := range c.open[address] {
		if !one.messages && one.isIdle() && one.read.Load() < since {
			idle = append(idle, one)
		}
	}
	c.mu.Unlock()
	for _, one := range idle {
		_ = one.Close() // fails only if it is closed
	}
}

// A conn is a connection that knows when it was used.
type conn struct {
	net.Conn

	address     string
	messages    bool // it waits for messages, and so it is quiet for long
	of          *conns
	closed      atomic.Bool
	wrote, read atomic.Int64 // the last time that something was
}

// isIdle reports whether no call is waiting for an answer.
func (c *conn) isIdle() bool { return c.wrote.Load() <= c.read.Load() }

func (c *conn) Write(b []byte) (int, error) {
	c.wrote.Store(now())
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.read.Store(now())
	}
	return n, err
}

func (c *conn) Close() error {
	if !c.closed.Swap(true) {
		c.of.remove(c)
		if wrote := c.wrote.Load(); !c.isIdle() && now()-wrote >= int64(suspectAfter) {
			c.of.drop(c.address, wrote) // nobody waits for its answer any more
		}
	}
	return c.Conn.Close()
}

// SyscallConn is called by go-redis before it uses an idle connection again.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if c.closed.Load() {
		return nil, net.ErrClosed
	}
	if socket, ok := c.Conn.(syscall.Conn); ok {
		return socket.SyscallConn()
	}
	return noSocket{}, nil // what is encrypted can't be seen from outside
}

// A noSocket is asked for nothing.
type noSocket struct{}

var errNoSocket = errors.New("goredisstore: no socket")

func (noSocket) Control(func(uintptr)) error   { return errNoSocket }
func (noSocket) Read(func(uintptr) bool) error { return nil } // it is taken for alive
func (noSocket) Write(func(uintptr) bool) error {
	return errNoSocket
}

var start = time.Now()

// now is a moment that is compared with others.
func now() int64 { return int64(time.Since(start)) }
