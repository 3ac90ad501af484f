// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// A cable is what connects a client to its store. It can be cut: from then on
// nothing gets through, and neither end is told. The zero cable is whole.
type cable struct {
	broken atomic.Bool
	sent   meter
	atCut  func() // for a store that is not reached through dial
}

func (c *cable) cut() {
	c.broken.Store(true)
	if c.atCut != nil {
		c.atCut()
	}
}

func (c *cable) isCut() bool { return c.broken.Load() }

var errNoRoute = errors.New("no route to host")

// dial connects through the cable; it is rueidis' DialCtxFn.
func (c *cable) dial(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	if config != nil {
		// What is counted and cut is what goes into the encryption and comes out of it.
		return c.connect(ctx, addr, &tls.Dialer{NetDialer: dialer, Config: config}, true)
	}
	return c.connect(ctx, addr, dialer, true)
}

// A dialer makes connections, such as net.Dialer and tls.Dialer.
type dialer interface {
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
}

// connect is dial for any protocol. Only the commands of Redis can be counted.
func (c *cable) connect(ctx context.Context, addr string, by dialer, counts bool) (net.Conn, error) {
	if c.isCut() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errNoRoute}
	}
	conn, err := by.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &cabledConn{Conn: conn, cable: c, counts: counts}, nil
}

type cabledConn struct {
	net.Conn
	cable  *cable
	counts bool
	rest   []byte // of a command that has not been sent to its end
	closed atomic.Bool
}

func (c *cabledConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// Read lets nothing through once the cable is cut.
func (c *cabledConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.cable.isCut() {
			return n, err
		}
	}
}

func (c *cabledConn) Write(b []byte) (int, error) {
	if c.cable.isCut() && !c.closed.Load() {
		return len(b), nil
	}
	if c.counts {
		c.rest = c.cable.sent.count(append(c.rest, b...))
	}
	return c.Conn.Write(b)
}

// A meter counts the commands that are sent, by their first word.
type meter struct {
	mu    sync.Mutex
	total map[string]int
}

// count counts the commands that stream begins with and returns what follows
// them, the beginning of another one.
func (m *meter) count(stream []byte) (rest []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.total == nil {
		m.total = make(map[string]int)
	}
	for {
		name, rest, ok := cutCommand(stream)
		if !ok {
			return stream
		}
		m.total[name]++
		stream = rest
	}
}

// counts returns how many of each command have been sent.
func (m *meter) counts() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.total)
}

// cutCommand cuts the first command off a stream: an array of strings, each with
// its length before it.
func cutCommand(stream []byte) (name string, rest []byte, ok bool) {
	words, rest, ok := cutNumber(stream, '*')
	if !ok {
		return "", nil, false
	}
	for i := range words {
		var length int
		if length, rest, ok = cutNumber(rest, '$'); !ok || len(rest) < length+2 {
			return "", nil, false
		}
		if i == 0 {
			name = strings.ToUpper(string(rest[:length]))
		}
		rest = rest[length+2:]
	}
	return name, rest, true
}

func cutNumber(stream []byte, kind byte) (n int, rest []byte, ok bool) {
	line, rest, ok := bytes.Cut(stream, []byte("\r\n"))
	if !ok {
		return 0, nil, false
	}
	if len(line) == 0 || line[0] != kind {
		panic("not a command: " + strconv.Quote(string(line)))
	}
	n, err := strconv.Atoi(string(line[1:]))
	return n, rest, err == nil
}
