// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// A sessionConn is one connection. It reads along until the server has said which session
// it has accepted and for how long, because the client library does not tell.
type sessionConn struct {
	net.Conn
	store *Store
	begun watchdog.Instant // before the first byte was sent
	// answerBy is when the server is to have accepted the session.
	answerBy time.Time
	head     []byte // of what was received

	rewatches chan struct{} // closed when watches are asked for again
	rewatched sync.Once
	holdsBack time.Duration // so long the first answer waits for that
}

// The server's first packet: its length, the protocol's version, the timeout in
// milliseconds, and the session's id, zero if it has expired.
const (
	timeoutAt = 8
	sessionAt = 12
	headLen   = 20
)

// A server that takes a connection and does not answer, because it is stopped or
// has no leader, must not keep the client from the others: the library would wait
// for several session timeouts.
const (
	handshakeShare    = 3 // of the session timeout
	shortestHandshake = time.Second
	longestHandshake  = 5 * time.Second
)

// SetReadDeadline is the library's, but for the server's first packet.
func (l *sessionConn) SetReadDeadline(t time.Time) error {
	if len(l.head) < headLen {
		t = l.answerBy
	}
	return l.Conn.SetReadDeadline(t)
}

// Read passes on what is received.
func (l *sessionConn) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if len(l.head) == headLen {
		l.afterWatches()
	} else {
		l.head = append(l.head, b[:min(n, headLen-len(l.head))]...)
		if len(l.head) == headLen {
			l.accepted()
		}
	}
	return n, err
}

const (
	opcodeAt     = 8
	opSetWatches = 101
	// overtakes is how long an answer waits for watches to be asked for, should the
	// client library know of none.
	overtakes = 100 * time.Millisecond
	// settles is how long it waits if there are none that could be asked for. The
	// library looks for them all the same, once it has begun to send, and must not
	// find those that the first requests lead to.
	settles = 10 * time.Millisecond
)

// Write sees the library ask for its watches again.
func (l *sessionConn) Write(b []byte) (int, error) {
	if len(b) >= opcodeAt+4 && binary.BigEndian.Uint32(b[opcodeAt:]) == opSetWatches {
		defer l.rewatched.Do(func() { close(l.rewatches) })
	}
	return l.Conn.Write(b)
}

// afterWatches keeps the first answer on a line from overtaking the request for
// watches that the line before had. The library says in it what it has seen last,
// for the server to tell what has happened since; it takes that from the latest
// answer, on another goroutine and without a lock.
func (l *sessionConn) afterWatches() {
	if l.holdsBack == 0 {
		return
	}
	limit := time.NewTimer(l.holdsBack)
	l.holdsBack = 0
	defer limit.Stop()
	select {
	case <-l.rewatches:
	case <-limit.C:
	}
}

func (l *sessionConn) accepted() {
	session := int64(binary.BigEndian.Uint64(l.head[sessionAt:]))
	timeout := time.Duration(binary.BigEndian.Uint32(l.head[timeoutAt:])) * time.Millisecond
	if session == 0 {
		l.store.hosts.disown()
		return
	}
	l.store.health.connected(l, session, timeout)
	l.holdsBack = settles
	if l.store.watchesAny() {
		l.holdsBack = overtakes
	}
}

// Lines is how the client library connects, and how it is kept from doing so.
type lines struct {
	mu      sync.Mutex
	present *sessionConn
	dialing context.CancelFunc // ends the present attempt
	failure error              // of the last attempt
	cut     bool
}

var errCut = errors.New("zkstore: closed")

// dial is the client library's dialer.
func (st *Store) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	patience := min(max(st.settings.sessionTimeout/handshakeShare, shortestHandshake), longestHandshake)
	l := &sessionConn{store: st, begun: watchdog.Now(), answerBy: time.Now().Add(patience), rewatches: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), max(timeout, patience/2)) // names are looked up, too
	defer cancel()
	if err := st.lines.begin(cancel); err != nil {
		return nil, err
	}
	err := st.connect(ctx, l, network, address)
	if err = st.lines.use(l, err); err != nil {
		return nil, err
	}
	return l, nil
}

func (st *Store) connect(ctx context.Context, l *sessionConn, network, address string) error {
	conn, err := st.settings.dial(ctx, network, address)
	if err != nil {
		return err
	}
	if l.Conn, err = st.secure(ctx, conn, address); err != nil {
		_ = conn.Close() // it was never used
	}
	return err
}

// secure adds TLS, if that is wanted.
func (st *Store) secure(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	config := st.settings.tls
	if config == nil {
		return conn, nil
	}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		config = config.Clone()
		config.ServerName = host
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return secured, nil
}

// begin is called before an attempt to connect.
func (ls *lines) begin(cancel context.CancelFunc) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.cut {
		return errCut
	}
	ls.dialing = cancel
	return nil
}

// use is called after it.
func (ls *lines) use(l *sessionConn, err error) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.dialing, ls.failure = nil, err
	if err != nil {
		return err
	}
	if ls.cut {
		_ = l.Close() // it was never used
		return errCut
	}
	ls.present = l
	return nil
}

// lastFailure is why there is no line.
func (ls *lines) lastFailure() error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.failure
}

// abandon cuts the present connection, or the attempt at one, and allows no other.
func (ls *lines) abandon() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.cut = true
	if ls.dialing != nil {
		ls.dialing()
	}
	if ls.present != nil {
		_ = ls.present.Close() // what is under way is lost, as it should be
	}
}
