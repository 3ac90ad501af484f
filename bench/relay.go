// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// A relay passes connections on to Redis and counts the commands that they carry. It is for peers
// that run in another process.
type relay struct {
	meter    *meter
	listener net.Listener
	to       string
	mu       sync.Mutex
	conns    []net.Conn
	closed   bool
	running  sync.WaitGroup
}

func startRelay(to string) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{meter: new(meter), listener: listener, to: to}
	r.running.Go(r.accept)
	return r, nil
}

func (r *relay) address() string { return r.listener.Addr().String() }

// accept ends with the listener.
func (r *relay) accept() {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		far, err := dialer.DialContext(context.Background(), "tcp", r.to)
		if err != nil || !r.keep(near, far) {
			_ = near.Close() // the client sees it
			continue
		}
		r.running.Go(func() { pass(&meteredConn{Conn: far, meter: r.meter}, near) })
		r.running.Go(func() { pass(near, far) })
	}
}

// keep remembers connections, to be closed with the relay.
func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		for _, c := range conns {
			_ = c.Close() // nothing was sent
		}
		return false
	}
	r.conns = append(r.conns, conns...)
	return true
}

// pass ends both connections when one of them ends.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // either has ended
	_ = to.Close()
	_ = from.Close()
}

func (r *relay) close() {
	_ = r.listener.Close() // ends accept
	r.mu.Lock()
	r.closed = true
	for _, c := range r.conns {
		_ = c.Close() // ends pass
	}
	r.mu.Unlock()
	r.running.Wait()
}
