// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
)

// The grace begins with the first request to the new primary. So a waiter has its key little more than
// a grace after the sentinel has named that primary. The waiters' heartbeat is 3 s, to show that
// they don't wait for it. If the host of the old primary is down, dials to it end after a second:
// first the one that keeps rueidis from following the failover, then the waiter's own.
func TestTheFirstGrantAfterAFailoverIsSoon(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		late time.Duration // at most
		fail func(*promotion)
	}{
		"the server is killed": {time.Second, func(p *promotion) { p.primary.own.Kill() }},
		"the host is down":     {3 * time.Second, (*promotion).hostFails},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPromotion(t)
			st := p.sv.newStore(t, WithFailoverGrace(p.grace))
			held := p.queue(t, st)
			p.inStep(t)
			tt.fail(p)
			grants := map[string]<-chan time.Time{
				"who was in the queue":   held,
				"who came in the outage": p.wait(t, p.newLocks(t, st), "free"),
			}
			named := p.named(t)
			for who, grant := range grants {
				late := (<-grant).Sub(named) - p.grace
				_, stalled := p.stall.sorted()
				if most := tt.late + 3*stalled; late > most {
					t.Errorf("%s: got the key %v after a grace, want at most %v", who, late, most)
				}
			}
		})
	}
}

// A promotion is a failover of a Sentinel set that is timed.
type promotion struct {
	pair

	grace    time.Duration
	hostDown atomic.Bool // the primary's address says nothing
	stall    durations   // for which this process was not seen to run
}

func newPromotion(t *testing.T) *promotion {
	t.Helper()
	sv, nodes := startSentinelSet(t, servers.Config{})
	p := &promotion{pair: pair{sv: sv, primary: nodes[0], replica: nodes[1]}, grace: time.Second}
	sv.acquaint(t, p.grace)
	sv.Option.Sentinel.TopologyRefreshInterval = 200 * time.Millisecond // so that it surely dials in the outage
	sv.Option.Dialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		if p.hostDown.Load() && address == p.primary.own.Addr {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	p.stall.ofThisProcess(t)
	return p
}

// newLocks opens a client whose heartbeat is as long as can be.
func (p *promotion) newLocks(t *testing.T, st *Store) *asynclock.Client {
	t.Helper()
	return newClient(t, st, asynclock.WithTTL(30*time.Second), asynclock.WithoutLogger())
}

// wait begins to wait for a key, for longer than a waiter has patience. Its lease is so short that
// it prolongs no grace. The channel gets the time of the grant.
func (p *promotion) wait(t *testing.T, c *asynclock.Client, key string) <-chan time.Time {
	t.Helper()
	granted := make(chan time.Time, 1)
	go func() { // ends with the test
		for {
			_, err := c.Lock(t.Context(), key, asynclock.WithMaxHold(p.grace/2))
			if !errors.Is(err, store.ErrUnreachable) {
				granted <- time.Now()
				return
			}
		}
	}()
	return granted
}

// queue begins to wait for a key whose holder is dead. Its time ends in the failover.
func (p *promotion) queue(t *testing.T, st *Store) <-chan time.Time {
	t.Helper()
	p.sv.Do(t, "SET", p.sv.redisKey("held", 'l'), "1 old - - -", "PX", "60000")
	c := p.newLocks(t, st)
	granted := p.wait(t, c, "held")
	kit.Eventually(t, "it is in the queue", func() bool {
		info, err := c.Inspect(t.Context(), "held")
		return err == nil && info.Waiters == 1
	})
	p.sv.Do(t, "PEXPIRE", p.sv.redisKey("held", 'l'), "1000")
	return granted
}

// hostFails ends the primary, and what is sent to its address vanishes.
func (p *promotion) hostFails() {
	p.hostDown.Store(true)
	p.primary.own.Kill()
}

// named returns when the sentinel first names the new primary. That is up to a second after the
// promotion, because it looks once a second.
func (p *promotion) named(t *testing.T) time.Time {
	t.Helper()
	kit.Eventually(t, "the sentinel names the replica", func() bool {
		reply, err := p.sv.whole.Sentinels[0].Text(t.Context(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", servers.MasterSet)
		return err == nil && strings.Contains(reply, p.replica.own.Port())
	})
	return time.Now()
}

// ofThisProcess notes how long the process is not seen to run, until the test ends.
func (d *durations) ofThisProcess(t *testing.T) {
	t.Helper()
	const pause = 10 * time.Millisecond
	looks := time.NewTicker(pause)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ends with the test, which waits for it
		defer close(stopped)
		for seen := time.Now(); ; {
			select {
			case <-looks.C:
				now := time.Now()
				d.note(now.Sub(seen) - pause)
				seen = now
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		looks.Stop()
		close(stop)
		<-stopped
	})
}
