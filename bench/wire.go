// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A meter counts the commands that connections send to Redis. INFO commandstats would be wrong,
// because it also counts the commands that scripts call.
type meter struct {
	commands atomic.Int64
	scripts  atomic.Int64 // those of them that call a script
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
}

// dial is a dialFunc that counts.
func (m *meter) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := dial(ctx, address)
	return &meteredConn{Conn: conn, meter: m}, err
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
	named bool   // the first of them, its name, has been read
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
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		c.line = append(c.line, line...)
		if !whole {
			return
		}
		c.read(string(bytes.TrimSuffix(c.line, []byte("\r"))))
		c.line, b = c.line[:0], rest
	}
}

// read handles the line before a command, the line before a word of one, or its name.
func (c *meteredConn) read(line string) {
	switch {
	case line == "":
	case c.words == 0:
		c.words, _ = strconv.Atoi(line[1:]) // a client of Redis sends a number
		c.named = false
		c.meter.commands.Add(1)
	case c.named:
		n, _ := strconv.Atoi(line[1:])
		c.skip = n + len("\r\n")
		c.words--
	case line[0] != '$': // its length, which comes before, is not needed
		c.named = true
		c.words--
		switch strings.ToUpper(line) {
		case "EVALSHA", "EVAL", "FCALL":
			c.meter.scripts.Add(1)
		}
	}
}

// startRelay passes connections on to Redis and counts the commands that they carry. It is for peers
// that run in another process. It ends with the stage.
func (s *stage) startRelay() (address string, m *meter) {
	m = new(meter)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { // ends with the listener
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := m.dial(ctx, s.redis)
			if err != nil {
				_ = near.Close() // the client sees it
				continue
			}
			end := func() { _, _ = near.Close(), far.Close() } // either may have ended
			context.AfterFunc(ctx, end)
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				running.Go(func() { // ends with one of the connections
					_, _ = io.Copy(way[0], way[1])
					end()
				})
			}
		}
	})
	s.after(func(context.Context) error {
		err := listener.Close()
		stop()
		running.Wait()
		return err
	})
	return listener.Addr().String(), m
}

// far is a dialFunc for a distant server: written bytes arrive later by the delay, in order, and
// the writer does not wait for them.
func far(delay time.Duration) dialFunc {
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		f := &farConn{Conn: conn, delay: delay, wire: make(chan parcel, 1<<12)}
		f.closed, f.end = context.WithCancel(context.Background())
		go f.carry() // ends when the connection is closed
		return f, nil
	}
}

type farConn struct {
	net.Conn
	delay  time.Duration
	wire   chan parcel
	closed context.Context //nolint:containedctx // it says only that the connection was closed
	end    context.CancelFunc
}

// A parcel is bytes and the time of their arrival.
type parcel struct {
	bytes   []byte
	arrives time.Time
}

func (f *farConn) Write(b []byte) (int, error) {
	select {
	case f.wire <- parcel{bytes.Clone(b), time.Now().Add(f.delay)}:
		return len(b), nil
	case <-f.closed.Done():
		return 0, net.ErrClosed
	}
}

func (f *farConn) Close() error {
	f.end()
	return f.Conn.Close()
}

func (f *farConn) carry() {
	for {
		select {
		case p := <-f.wire:
			time.Sleep(time.Until(p.arrives))
			if _, err := f.Conn.Write(p.bytes); err != nil {
				return // the reader gets the reason
			}
		case <-f.closed.Done():
			return
		}
	}
}
