// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

// isProven waits until the only grace is proven to follow no loss. On a busy machine two clocks can't be compared at once.
func isProven(t *testing.T, st *Store) (g store.Grace) {
	t.Helper()
	kit.Eventually(t, "there is evidence", func() bool {
		g = theGrace(t, st)
		return g.Proven
	})
	return g
}

// A planned failover costs no grace: the old primary is the evidence that nothing was lost, and who waits has the key at
// once when somebody ends the grace.
func TestAPlannedFailoverCostsNoGrace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		start func(*testing.T) *pair
		over  func(*testing.T, *pair) (after *server)
	}{
		"two servers": {replicated, func(t *testing.T, p *pair) *server {
			p.primary.Do(t, "FAILOVER", "TO", "127.0.0.1", p.replica.own.Port())
			p.replica.prefix = p.sv.prefix
			return p.replica
		}},
		"a Cluster": {clusterPair, func(t *testing.T, p *pair) *server {
			p.areKnown(t)
			p.replica.takesOver(t, "CLUSTER", "FAILOVER")
			return p.sv
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := tt.start(t)
			p.sv.acquaint(t, lasts)
			first := join(t, p.sv.newStore(t))
			first.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: first.Hold("key", "a").Token})
			p.inStep(t)
			after := tt.over(t, p)
			kit.Eventually(t, "the primary is a replica", func() bool { return p.primary.fact("role") == "slave" })
			p.reversed().inStep(t)

			st := after.newStore(t)
			locks := newClient(t, st)
			locked := make(chan error, 1)
			go func() {
				locked <- locks.WithLock(t.Context(), "key", func(context.Context, *asynclock.Lease) error { return nil })
			}()
			kit.Eventually(t, "somebody waits in the grace", func() bool {
				graces, err := st.Graces(t.Context())
				return err == nil && len(graces) > 0 && graces[0].Waiting > 0
			})
			g := isProven(t, st)
			if g.Why != store.GracePromoted {
				t.Errorf("got %+v, want a promotion", g)
			}
			kit.Eventually(t, "the clocks can be compared", func() bool {
				ended, err := st.EndGrace(t.Context(), store.GraceEnd{History: g.History, Before: g.Before})
				if err == nil && (ended.Ended != g.Parts || ended.Left != 0) || err != nil && !errors.Is(err, store.ErrGraceUnproven) {
					t.Fatalf("EndGrace: got %+v, %v", ended, err)
				}
				return err == nil
			})
			select {
			case err := <-locked:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(long):
				t.Error("who waits was not told")
			}
		})
	}
}

// A failover that loses writes has no evidence, and nor has one whose old primary is away.
func TestAFailoverThatLosesWritesIsNotEnded(t *testing.T) {
	t.Parallel()
	p := replicated(t)
	p.sv.acquaint(t, lasts)
	first := join(t, p.sv.newStore(t))
	first.Hold("key", "a")
	p.cut(t)
	first.Hold("lost", "a")
	p.replica.leads(t)
	p.replica.prefix = p.sv.prefix
	st := p.replica.newStore(t)
	end := func(when string) {
		t.Helper()
		g := theGrace(t, st)
		if g.Proven || g.Why != store.GracePromoted {
			t.Errorf("%s: got %+v, want no evidence", when, g)
		}
		if _, err := st.EndGrace(t.Context(), store.GraceEnd{History: g.History, Before: g.Before}); !errors.Is(err, store.ErrGraceUnproven) {
			t.Errorf("%s: EndGrace: got %v, want %v", when, err, store.ErrGraceUnproven)
		}
	}
	end("the old primary is away")
	p.primary.Do(t, "CONFIG", "SET", "requirepass", "")
	p.primary.follows(t, p.replica, "sync_full")
	end("the old primary follows")
}

// Another replica shows the right ids, too, when it follows the new primary by a partial resync. It has granted nothing.
func TestTheEvidenceIsTheOldPrimarys(t *testing.T) {
	t.Parallel()
	p := replicated(t)
	p.sv.acquaint(t, lasts)
	fellow := ownServer(t, "--repl-ping-replica-period", "3600")
	fellow.follows(t, p.primary, "sync_full")
	p.inStep(t)
	p.replica.leads(t)
	p.replica.prefix = p.sv.prefix
	st := p.replica.newStore(t)
	fellow.follows(t, p.replica, "sync_partial_ok")
	if g := theGrace(t, st); g.Proven {
		t.Errorf("another replica: got %+v, want no evidence", g)
	}
	p.primary.follows(t, p.replica, "sync_partial_ok")
	isProven(t, st)
	p.primary.Do(t, "CONFIG", "SET", "replica-read-only", "no")
	if g := theGrace(t, st); g.Proven {
		t.Errorf("a replica that can be written: got %+v, want no evidence", g)
	}
}

// Where the new primary's clock is ahead, TTLs of records end before holders stop, as long as the old leases last: there is
// no end, not even by somebody who knows that nothing was lost.
func TestAClockThatIsAheadIsNoEvidence(t *testing.T) {
	t.Parallel()
	base := time.Now()
	at := func(ahead, began, took time.Duration) redisconn.Reading {
		return redisconn.Reading{Clock: base.Add(began + took/2 + ahead).Round(0), Before: base.Add(began), After: base.Add(began + took)}
	}
	for name, tt := range map[string]struct {
		ours, olds    redisconn.Reading
		proven, ahead bool
	}{
		"they agree":               {at(0, 0, time.Millisecond), at(0, time.Second, time.Millisecond), true, false},
		"ours lags":                {at(-time.Hour, 0, time.Millisecond), at(0, time.Second, time.Millisecond), true, false},
		"ours is ahead":            {at(20*time.Millisecond, 0, time.Millisecond), at(0, time.Second, time.Millisecond), false, true},
		"ours is ahead, read last": {at(20*time.Millisecond, time.Second, time.Millisecond), at(0, 0, time.Millisecond), false, true},
		"nobody knows":             {at(0, 0, 30*time.Millisecond), at(0, time.Second, time.Millisecond), false, false},
	} {
		s := &shardGrace{grace: store.Grace{Proven: true}}
		s.compareClocks(tt.ours.Ahead(tt.olds))
		if s.grace.Proven != tt.proven || s.firm != tt.ahead {
			t.Errorf("%s: got proven %v, ahead %v, of %+v", name, s.grace.Proven, s.firm, s.grace.Evidence)
		}
	}
}
