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

// A sessionConn is one connection. It reads along until the server has said which session it has
// accepted and for how long, because the client library does not report that.
type sessionConn struct {
	net.Conn
	store *Store
	begun watchdog.Instant // before the first byte was sent
	// answerBy is the time by which the server must accept the session.
	answerBy time.Time
	head     []byte // the first received bytes

	rewatches chan struct{} // closed when the library sets its watches again
	rewatched sync.Once
	holdsBack time.Duration // how long the first answer waits for that
}

// The server's first packet: its length, the protocol's version, the timeout in milliseconds, and
// the session's id, which is zero if the session has expired.
const (
	timeoutAt = 8
	sessionAt = 12
	headLen   = 20
)

// A server may take a connection and not answer, because it is stopped or has no leader. It must
// not keep the client from the other servers: the library would wait for several session timeouts.
const (
	handshakeShare    = 3 // of the session timeout
	shortestHandshake = time.Second
	longestHandshake  = 5 * time.Second
)

// SetReadDeadline passes the library's deadline on, except for the server's first packet.
func (l *sessionConn) SetReadDeadline(t time.Time) error {
	if len(l.head) < headLen {
		t = l.answerBy
	}
	return l.Conn.SetReadDeadline(t)
}

// Read passes on the received bytes.
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
	// overtakes is how long an answer waits for the library to set its watches again, in case the
	// library knows of none.
	overtakes = 100 * time.Millisecond
	// settles is how long an answer waits if there are no watches to set again. The library checks
	// for watches all the same after it has begun to send. It must not find those of the first
	// requests.
	settles = 10 * time.Millisecond
)

// Write notices when the library sets its watches again.
func (l *sessionConn) Write(b []byte) (int, error) {
	if len(b) >= opcodeAt+4 && binary.BigEndian.Uint32(b[opcodeAt:]) == opSetWatches {
		defer l.rewatched.Do(func() { close(l.rewatches) })
	}
	return l.Conn.Write(b)
}

// afterWatches keeps the first answer on a connection from overtaking the request that sets the
// last connection's watches again. In that request the library says what it has seen last, so that
// the server can tell what has happened since. The library takes this from the latest answer, on
// another goroutine and without a lock.
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

// lines makes the client library's connections and, after Close, prevents them.
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
	ctx, cancel := context.WithTimeout(context.Background(), max(timeout, patience/2)) // the time includes looking up names
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

// secure adds TLS, if it is configured.
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

// use is called after an attempt to connect.
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

// lastFailure returns why there is no connection.
func (ls *lines) lastFailure() error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.failure
}

// abandon closes the present connection, or the attempt to make one, and allows no other.
func (ls *lines) abandon() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.cut = true
	if ls.dialing != nil {
		ls.dialing()
	}
	if ls.present != nil {
		_ = ls.present.Close() // requests under way are lost, as they should be
	}
}
