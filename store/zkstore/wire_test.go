// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A wire is what connects a test's store. It can be cut, so that neither end hears
// of the other and is not told; it can lose the answer to a request; and it knows
// the session's credentials.
type wire struct {
	t testing.TB

	mu      sync.Mutex
	conn    net.Conn
	server  string
	isCut   bool
	loses   []byte // the connection breaks after a packet with this was sent
	drops   []byte // and instead of sending a packet with this
	before  []byte // then is called before a packet with this is sent
	then    func()
	counts  []byte // counted is how many packets have had this
	counted int
	hello   []byte // the server's first packet
	sent    int    // packets
}

func newWire(t testing.TB) *wire { return &wire{t: t} }

// dial is a store's dialer.
func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	isCut := w.isCut
	w.mu.Unlock()
	if isCut {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn, w.server, w.hello = conn, address, nil
	return &wired{Conn: conn, wire: w}, nil
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = true
}

// mend makes a cut wire whole. Lost packets stay lost: the old connection breaks.
func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = false
	w.conn.Close()
}

// lose breaks the connection, once, before the answer to a packet that has text in
// it.
func (w *wire) lose(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loses = []byte(text)
}

// drop breaks the connection, once, when a packet that has text in it is about to
// be sent, which the server never gets.
func (w *wire) drop(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drops = []byte(text)
}

// dropped reports whether that has happened.
func (w *wire) dropped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drops == nil
}

// interpose calls f, once, before a packet that has text in it is sent.
func (w *wire) interpose(text string, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.then = []byte(text), f
}

// count counts the packets with text in them from now on.
func (w *wire) count(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts, w.counted = []byte(text), 0
}

func (w *wire) packetsCounted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counted
}

func (w *wire) packets() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

type wired struct {
	net.Conn
	wire *wire
}

func (c *wired) Write(b []byte) (int, error) {
	w := c.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut {
		return len(b), nil
	}
	if w.before != nil && bytes.Contains(b, w.before) {
		w.before = nil
		w.then()
	}
	if w.drops != nil && bytes.Contains(b, w.drops) {
		w.drops = nil
		_ = c.SetReadDeadline(time.Unix(1, 0))
		return 0, io.ErrClosedPipe
	}
	if w.counts != nil && bytes.Contains(b, w.counts) {
		w.counted++
	}
	w.sent++
	n, err := c.Conn.Write(b)
	if err == nil && w.loses != nil && bytes.Contains(b, w.loses) {
		w.loses = nil
		// The server reads what was sent before it sees the end of it.
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		_ = c.SetReadDeadline(time.Unix(1, 0))
		return n, io.ErrClosedPipe
	}
	return n, err
}

// helloLen is how much of the server's first packet has the session's password.
const helloLen = headLen + 4 + 16

func (c *wired) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		w := c.wire
		w.mu.Lock()
		isCut := w.isCut
		if missing := helloLen - len(w.hello); missing > 0 && w.conn == c.Conn {
			w.hello = append(w.hello, b[:min(n, missing)]...)
		}
		w.mu.Unlock()
		if err != nil || !isCut {
			return n, err
		}
	}
}

// expire ends the session as an impostor can who knows its id and password: it
// takes the session over, and closes it.
func (w *wire) expire() {
	w.t.Helper()
	w.mu.Lock()
	hello, server := bytes.Clone(w.hello), w.server
	w.mu.Unlock()
	if len(hello) < helloLen {
		w.t.Fatal("the session's credentials are not known")
	}
	conn, err := new(net.Dialer).DialContext(w.t.Context(), "tcp", server)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		w.t.Fatal(err)
	}
	connect := binary.BigEndian.AppendUint32(nil, 0)              // version
	connect = binary.BigEndian.AppendUint64(connect, 0)           // last zxid seen
	connect = append(connect, hello[timeoutAt:timeoutAt+4]...)    // timeout
	connect = append(connect, hello[sessionAt:helloLen]...)       // session and password
	closing := binary.BigEndian.AppendUint32(nil, 1)              // xid
	closing = binary.BigEndian.AppendUint32(closing, ^uint32(10)) // -11, closeSession
	for _, packet := range [][]byte{connect, closing} {
		if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(packet))), packet...)); err != nil {
			w.t.Fatal(err)
		}
		var length [4]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			w.t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(length[:]))); err != nil {
			w.t.Fatal(err)
		}
	}
}
