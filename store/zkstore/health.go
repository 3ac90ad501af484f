// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// A sessionHealth computes for how long the session is certain to live.
//
// The leader ends a session if it has received nothing about it for the session's timeout. A server
// that is not the leader answers pings and reads by itself. Twice a tick it reports to the leader
// which sessions were active. An answer alone therefore proves little: a server that has lost its
// leader continues to answer for several ticks.
//
// The proof is a write that a quorum has accepted, and it is a proof about the past. The leader
// knows of every request that was sent and answered half a tick before the write, because the
// server's messages to the leader arrive in order. If there is another leader since, it started
// every session's time anew after our write.
//
// A new connection proves no more. The leader is asked whether the session still exists, and counts
// from then, but this leader may be one that its peers have replaced. A write also proves that it
// is not, without the delay of half a tick. Only a new session needs no proof, because its creation
// is a write.
//
// ZooKeeper's client library does not report its pings, so the store has a heartbeat of its own.
type sessionHealth struct {
	mu       sync.Mutex
	lag      time.Duration // the delay until the leader knows: half a tick
	session  int64
	timeout  time.Duration    // as negotiated
	counts   time.Duration    // the part of it that can be trusted
	conn     *sessionConn     // the present connection
	known    watchdog.Instant // at this time or later, the leader knew of the session
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
	// Until a write proves that the leader uses this server's timeout, the leader may still use the
	// timeout that another server has given.
	if p.counts == 0 || timeout < p.counts {
		p.counts = timeout
	}
	p.conn, p.session, p.timeout = l, session, timeout
	p.answered = []beat{{l.begun, l.begun.Add(-p.lag)}} // the leader already knows of it
}

// ask makes a request and records that it was answered.
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
		return // it is unknown which server answered
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
		return // a busy client has enough answers
	}
	p.answered = append(p.answered, beat{sent, now})
	if len(p.answered) > mostBeats {
		p.answered = p.answered[1:]
	}
}

// mostBeats is how many beats are remembered while nothing is written.
const mostBeats = 64

// promise returns the TTL that a request at that moment can promise. Asynclock keeps 11 % of a TTL
// in reserve. With this promise it trusts a holding for no longer than with the whole timeout,
// counted from the last time at which the leader knew of the session. The promise is usually
// negative if that was long ago, and always if the session is another one.
func (p *sessionHealth) promise(session int64, at watchdog.Instant) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if session != p.session {
		return -1
	}
	since := max(at.Sub(p.known), 0)
	return p.counts - since - since/8
}

// now returns the present session and its timeout.
func (p *sessionHealth) now() (session int64, timeout time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session, p.timeout
}
