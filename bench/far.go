// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"sync"
	"time"
)

// far is a dialFunc for a distant server: written bytes arrive later by the delay, in order, and
// the writer does not wait for them.
func far(delay time.Duration) dialFunc {
	return func(ctx context.Context, address string) (net.Conn, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		f := &farConn{Conn: conn, delay: delay, wire: make(chan parcel, 1<<12), closed: make(chan struct{})}
		go f.carry() // ends when the connection is closed
		return f, nil
	}
}

type farConn struct {
	net.Conn
	delay  time.Duration
	wire   chan parcel
	closed chan struct{}
	once   sync.Once // Close may be called twice
}

// A parcel is bytes and the time of their arrival.
type parcel struct {
	bytes   []byte
	arrives time.Time
}

func (f *farConn) Write(b []byte) (int, error) {
	p := parcel{append([]byte(nil), b...), time.Now().Add(f.delay)}
	select {
	case f.wire <- p:
		return len(b), nil
	case <-f.closed:
		return 0, net.ErrClosed
	}
}

func (f *farConn) Close() error {
	f.once.Do(func() { close(f.closed) })
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
		case <-f.closed:
			return
		}
	}
}
