// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/watchdog"
)

const (
	pulseTimeout = 10 * time.Second
	pulseLag     = time.Second
)

// onPulse runs a test in a bubble with a pulse whose line has just begun.
func onPulse(t *testing.T, test func(p *sessionHealth, begun watchdog.Instant)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		p := &sessionHealth{lag: pulseLag}
		begun := watchdog.Now()
		p.connected(&sessionConn{begun: begun}, 1, pulseTimeout)
		test(p, begun)
	})
}

// takes makes a request that takes so long and ends with err.
func (p *sessionHealth) takes(writes bool, d time.Duration, err error) {
	_ = p.ask(writes, func() error {
		time.Sleep(d)
		return err
	})
}

func wantKnown(t *testing.T, p *sessionHealth, want watchdog.Instant) {
	t.Helper()
	if p.known != want {
		t.Errorf("what the leader has heard: got %v after the beginning, want %v", p.known.Sub(p.conn.begun), want.Sub(p.conn.begun))
	}
}

// A server that has lost its leader goes on answering.
func TestAnswersAloneProveNothing(t *testing.T) {
	onPulse(t, func(p *sessionHealth, begun watchdog.Instant) {
		for range 20 {
			time.Sleep(pulseLag / 2)
			p.takes(false, time.Millisecond, nil)
		}
		wantKnown(t, p, begun)
	})
}

// The leader hears of an answered request half a tick later at the latest, and a
// write proves that it was there to hear.
func TestAWriteProvesWhatWasAnsweredBefore(t *testing.T) {
	onPulse(t, func(p *sessionHealth, begun watchdog.Instant) {
		time.Sleep(3 * time.Second)
		first := watchdog.Now()
		p.takes(false, 100*time.Millisecond, nil)
		time.Sleep(pulseLag - 200*time.Millisecond)
		p.takes(true, time.Millisecond, nil) // too soon after the answer
		wantKnown(t, p, begun)
		time.Sleep(300 * time.Millisecond)
		p.takes(true, time.Millisecond, nil) // of the first the leader knows, of the second not yet
		wantKnown(t, p, first)
	})
}

// The time at which a request was sent counts, not the time of its answer.
func TestASlowRequestCountsFromItsSending(t *testing.T) {
	onPulse(t, func(p *sessionHealth, _ watchdog.Instant) {
		time.Sleep(time.Second)
		sent := watchdog.Now()
		p.takes(false, 5*time.Second, nil)
		time.Sleep(pulseLag)
		p.takes(true, time.Millisecond, nil)
		wantKnown(t, p, sent)
	})
}

func TestAWriteThatFailsProvesNothing(t *testing.T) {
	onPulse(t, func(p *sessionHealth, begun watchdog.Instant) {
		time.Sleep(time.Millisecond)
		p.takes(false, time.Millisecond, nil)
		time.Sleep(2 * pulseLag)
		for _, err := range []error{zk.ErrConnectionClosed, zk.ErrSessionExpired, zk.ErrNoServer, zk.ErrClosing, zk.ErrNoAuth} {
			p.takes(true, time.Millisecond, err)
			wantKnown(t, p, begun)
		}
		p.takes(true, time.Millisecond, zk.ErrNoNode)
		if p.known == begun {
			t.Error("the leader's answer that there is no such node proves nothing, want that it is an answer")
		}
	})
}

// A new connection is made known to the leader at once, but to which one only a
// write proves; and what an old one's server knew, it may have kept to itself.
func TestAConnectionStartsAnew(t *testing.T) {
	onPulse(t, func(p *sessionHealth, begun watchdog.Instant) {
		time.Sleep(time.Second)
		p.takes(false, time.Millisecond, nil)
		time.Sleep(2 * pulseLag)
		next := &sessionConn{begun: watchdog.Now()}
		time.Sleep(time.Second)
		known := func(want watchdog.Instant) {
			t.Helper()
			if p.known != want {
				t.Errorf("what the leader has heard: got %v after the beginning, want %v", p.known.Sub(begun), want.Sub(begun))
			}
		}
		_ = p.ask(true, func() error { // asked on the old one, answered on who knows which
			p.connected(next, 1, pulseTimeout)
			return nil
		})
		known(begun)
		p.takes(false, time.Millisecond, nil)
		known(begun)
		p.takes(true, time.Millisecond, nil)
		known(next.begun)
	})
}

func TestANewSessionIsKnownAtOnce(t *testing.T) {
	onPulse(t, func(p *sessionHealth, _ watchdog.Instant) {
		time.Sleep(time.Second)
		next := &sessionConn{begun: watchdog.Now()}
		p.connected(next, 2, pulseTimeout)
		wantKnown(t, p, next.begun)
	})
}

// A server that promises more than the one before may not have asked the leader.
func TestALongerTimeoutIsToBeProven(t *testing.T) {
	onPulse(t, func(p *sessionHealth, _ watchdog.Instant) {
		for _, session := range []int64{1, 2} {
			for _, timeout := range []time.Duration{pulseTimeout / 2, 2 * pulseTimeout} {
				time.Sleep(time.Second)
				next := &sessionConn{begun: watchdog.Now()}
				p.connected(next, session, timeout)
				if _, said := p.now(); said != timeout {
					t.Errorf("timeout: got %v, want what the server has said, %v", said, timeout)
				}
			}
			if got := p.promise(session, p.known); got != pulseTimeout/2 {
				t.Errorf("promise before a write: got %v, want the shorter one, %v", got, pulseTimeout/2)
			}
			p.takes(false, time.Millisecond, nil)
			if got := p.promise(session, p.known); got != pulseTimeout/2 {
				t.Errorf("promise after an answer: got %v, want the shorter one, %v", got, pulseTimeout/2)
			}
			p.takes(true, time.Millisecond, nil)
			if got := p.promise(session, p.known); got != 2*pulseTimeout {
				t.Errorf("promise after a write: got %v, want %v", got, 2*pulseTimeout)
			}
		}
	})
}

// asynclock trusts a TTL less eleven hundredths and 5 ms, from the request's
// sending. The sum must not grow with the time since the leader has heard of us.
func TestAPromiseNeverOutlastsTheSession(t *testing.T) {
	onPulse(t, func(p *sessionHealth, begun watchdog.Instant) {
		limit := begun.Add(pulseTimeout - pulseTimeout*11/100)
		for range 80 {
			now := watchdog.Now()
			promise := p.promise(1, now)
			if trusted := now.Add(promise - promise/100 - promise/10); promise > 0 && trusted > limit {
				t.Errorf("after %v: trusted until %v, want at most %v", now.Sub(begun), trusted.Sub(begun), limit.Sub(begun))
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got := p.promise(1, begun.Add(pulseTimeout)); got > 0 {
			t.Errorf("promise when the session may be over: got %v, want none", got)
		}
		if got := p.promise(2, begun); got > 0 {
			t.Errorf("promise for another session: got %v, want none", got)
		}
		if got := p.promise(1, begun.Add(-time.Second)); got != pulseTimeout {
			t.Errorf("promise for a time before: got %v, want %v", got, pulseTimeout)
		}
	})
}
