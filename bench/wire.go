// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/faultconn"
)

// A meter counts the commands that connections send to Redis. INFO commandstats would be wrong,
// because it also counts the commands that scripts call.
type meter struct{ faultconn.Line }

// dial is a dialFunc that counts.
func (m *meter) dial(ctx context.Context, address string) (net.Conn, error) {
	return m.DialRedis(ctx, address, new(net.Dialer), nil)
}

// commands is how many there were, of these names or of all.
func (m *meter) commands(names ...string) (sum int) {
	for name, n := range m.Commands() {
		if len(names) == 0 || slices.Contains(names, name) {
			sum += n
		}
	}
	return sum
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
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
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
