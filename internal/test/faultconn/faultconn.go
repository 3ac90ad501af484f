// SPDX-License-Identifier: Apache-2.0

// Package faultconn connects a client to its server by a line that a test can cut. It
// counts the commands of Redis that are sent on it.
package faultconn

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

// A Line connects a client to its store. Once it is cut, nothing gets through, and
// neither end is notified. The zero Line is whole.
type Line struct {
	// OnCut, if not nil, is called by Cut. It is for a store that is reached without
	// Dial.
	OnCut func()

	broken atomic.Bool
	sent   meter
	trips  atomic.Int64
}

// Cut cuts the line for good.
func (l *Line) Cut() {
	l.broken.Store(true)
	if l.OnCut != nil {
		l.OnCut()
	}
}

// IsCut reports whether the line has been cut.
func (l *Line) IsCut() bool { return l.broken.Load() }

var errNoRoute = errors.New("no route to host")

// Commands returns how many of each command of Redis have been sent, by their names.
func (l *Line) Commands() map[string]int { return l.sent.counts() }

// Trips returns how often something was sent on a connection that had received something since it
// last sent. That is the number of round trips, if a connection waits for answers. Requests in one
// pipeline usually are one.
func (l *Line) Trips() int { return int(l.trips.Load()) }

// DialRedis connects to a Redis server and counts the commands. It is rueidis' DialCtxFn.
func (l *Line) DialRedis(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	if config != nil {
		// The line counts and cuts below: it sees the plain text, before encryption and after
		// decryption.
		return l.connect(ctx, addr, &tls.Dialer{NetDialer: dialer, Config: config}, true)
	}
	return l.connect(ctx, addr, dialer, true)
}

// A Dialer makes connections, such as net.Dialer and tls.Dialer.
type Dialer interface {
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
}

// Dial connects to a server of any protocol.
func (l *Line) Dial(ctx context.Context, addr string, by Dialer) (net.Conn, error) {
	return l.connect(ctx, addr, by, false)
}

func (l *Line) connect(ctx context.Context, addr string, by Dialer, counts bool) (net.Conn, error) {
	if l.IsCut() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errNoRoute}
	}
	conn, err := by.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &lineConn{Conn: conn, line: l, counts: counts}, nil
}

type lineConn struct {
	net.Conn
	line   *Line
	counts bool
	rest   []byte // of a command that has not been sent to its end
	closed atomic.Bool
	heard  atomic.Bool // something was received since the last was sent
}

func (c *lineConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// Read lets nothing through once the line is cut.
func (c *lineConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		c.heard.Store(true)
		if err != nil || !c.line.IsCut() {
			return n, err
		}
	}
}

func (c *lineConn) Write(b []byte) (int, error) {
	if c.line.IsCut() && !c.closed.Load() {
		return len(b), nil
	}
	if c.heard.Swap(false) {
		c.line.trips.Add(1)
	}
	if c.counts {
		c.rest = c.line.sent.count(append(c.rest, b...))
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
