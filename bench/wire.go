// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"sync/atomic"
)

// A meter counts the commands that connections send to Redis. INFO commandstats would be wrong,
// because it also counts the commands that scripts call.
type meter struct{ commands atomic.Int64 }

// dial is a dialFunc that counts.
func (m *meter) dial(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: conn, meter: m}, nil
}

// rueidisDial returns the world's dial in the form that rueidis needs.
func (w world) rueidisDial() func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	if w.dial == nil {
		return nil
	}
	return func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return w.dial(ctx, address)
	}
}

// A meteredConn parses the stream of written commands. Each is an array of strings with their
// lengths in front.
type meteredConn struct {
	net.Conn
	meter *meter
	words int    // remaining words of the present command
	skip  int    // remaining bytes of the present word
	line  []byte // the present line, as far as it has come
}

func (c *meteredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.follow(b[:n])
	return n, err
}

func (c *meteredConn) follow(b []byte) {
	for len(b) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(b))
			c.skip -= n
			b = b[n:]
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			c.line = append(c.line, b...)
			return
		}
		c.line = append(c.line, b[:end]...)
		c.header(bytes.TrimSuffix(c.line, []byte("\r")))
		c.line, b = c.line[:0], b[end+1:]
	}
}

// header handles the line before a command, or before a word of one.
func (c *meteredConn) header(line []byte) {
	if len(line) < 2 {
		return
	}
	n, err := strconv.Atoi(string(line[1:]))
	if err != nil {
		return
	}
	if c.words == 0 && line[0] == '*' {
		c.words = n
		c.meter.commands.Add(1)
		return
	}
	c.words--
	c.skip = n + len("\r\n")
}
