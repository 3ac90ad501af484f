// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// A sessionHealth knows for how long the session can be trusted to live.
//
// The leader ends a session when it has not heard of it for the session's
// timeout. A server that is not the leader answers pings and reads by itself, and
// tells the leader which sessions were active twice a tick, so an answer alone
// proves little: a server that has lost its leader goes on answering for several
// ticks. What proves that the leader has heard of us is a write that a quorum has
// accepted, and what it proves is about the past: of what we sent half a tick
// before it, and had an answer to, the leader knows, for the server's messages to
// the leader arrive in order. Should there be another leader since, it started
// every session's time anew after our write.
//
// Nor does a connection prove more: the leader is asked whether the session still
// exists, and counts from then, but it may be one that others have replaced. That,
// too, a write proves, without half a tick's delay. Only a new session needs none,
// for it is a write itself.
//
// ZooKeeper's client library keeps its pings to itself, so the store has a
// heartbeat of its own.
type sessionHealth struct {
	mu       sync.Mutex
	lag      time.Duration // how late the leader hears: half a tick
	session  int64
	timeout  time.Duration    // as negotiated
	counts   time.Duration    // what of it can be trusted
	conn     *sessionConn     // the present connection
	known    watchdog.Instant // the leader has heard of the session then, or later
	answered []beat           // on this connection, the oldest first
}

// A beat is a request that was answered.
type beat struct{ sent, answered watchdog.Instant }

// connected begins a connection: the server has accepted the session.
func (p *sessionHealth) connected(l *sessionConn, session int64, timeout time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if session != p.session {
		p.known = l.begun
	}
	// Until a write proves that the leader follows what this server says, it may
	// still go by what another has said before.
	if p.counts == 0 || timeout < p.counts {
		p.counts = timeout
	}
	p.conn, p.session, p.timeout = l, session, timeout
	p.answered = []beat{{l.begun, l.begun.Add(-p.lag)}} // the leader knows of it already
}

// ask makes a request and takes in that it was answered.
func (p *sessionHealth) ask(writes bool, request func() error) error {
	p.mu.Lock()
	on := p.conn
	p.mu.Unlock()
	sent := watchdog.Now()
	err := request()
	if answered(err) {
		p.noteAnswer(on, sent, writes)
	}
	return err
}

func (p *sessionHealth) noteAnswer(on *sessionConn, sent watchdog.Instant, wrote bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != on {
		return // by which server it was answered is unknown
	}
	n := 0 // how many the leader knows of
	for n < len(p.answered) && p.answered[n].answered <= sent.Add(-p.lag) {
		n++
	}
	if wrote && n > 0 {
		p.known = max(p.known, p.answered[n-1].sent)
		p.counts = p.timeout
		p.answered = p.answered[n-1:]
	}
	now := watchdog.Now()
	if last := len(p.answered) - 1; last >= 0 && now.Sub(p.answered[last].answered) < p.lag/8 {
		return // a busy client has answers enough
	}
	p.answered = append(p.answered, beat{sent, now})
	if len(p.answered) > mostBeats {
		p.answered = p.answered[1:]
	}
}

// mostBeats is how many are remembered while nothing is written.
const mostBeats = 64

// promise is what a TTL set at that moment can count for: so much that asynclock,
// which keeps 11 % of it in reserve, trusts the holding of a session for no longer
// than if the whole timeout had been counted from when the leader has last heard
// of it. It is negative, as a rule, if that was long ago, and for another session.
func (p *sessionHealth) promise(session int64, at watchdog.Instant) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if session != p.session {
		return -1
	}
	since := max(at.Sub(p.known), 0)
	return p.counts - since - since/8
}

// now is the present session and its timeout.
func (p *sessionHealth) now() (session int64, timeout time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session, p.timeout
}
