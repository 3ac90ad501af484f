// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

// A workload is something to do with locks, and what is measured of it.
type workload struct {
	name    string
	title   string
	metrics []metric // the first one is what peers are compared by
	rounds  int
	peers   []peer // nil: those of the run
	// leaveOut says why a peer has no part in it; empty: it has one.
	leaveOut func(peer) string
	prepare  func(ctx context.Context, w world, p peer) (runner, error)
	cold     bool   // no round goes before, to warm up
	base     string // the row that others are compared to; empty: the floor, and the best peer
}

// A metric is one number that a round yields.
type metric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// HigherIsBetter tells rates from times.
	HigherIsBetter bool `json:"higherIsBetter"`
}

// A runner is a workload made ready for one peer.
type runner interface {
	// round does it once and returns a value for each metric, NaN where there is
	// none.
	round(ctx context.Context) ([]float64, error)
	close(ctx context.Context) error
}

// A result is what came of a workload: for each peer, the values of each round.
type result struct {
	Workload string    `json:"workload"`
	Title    string    `json:"title"`
	Metrics  []metric  `json:"metrics"`
	Peers    []outcome `json:"-"`
	Base     string    `json:"comparedTo,omitempty"`
}

type outcome struct {
	Peer string
	// Rounds has a row for each round and a column for each metric.
	Rounds [][]float64
	Left   string // why there are no rounds
	Failed bool   // that is why
}

// fail notes that a peer could not go on. The rounds before do not count: whatever
// broke may have been wrong in them.
func (o *outcome) fail(round int, err error) {
	o.Rounds, o.Failed = nil, true
	o.Left = fmt.Sprintf("failed in round %d: %v", round, err)
}

// measure runs a workload for all peers: one round of each in turn, the first in
// turn another one each time, so that whatever else the machine does meets all
// of them. One round of each goes before, to warm up.
func measure(ctx context.Context, say *progress, w world, load workload, all []peer) (result, error) {
	if load.peers != nil {
		all = load.peers
	}
	res := result{Workload: load.name, Title: load.title, Metrics: load.metrics, Base: load.base}
	runners := make([]runner, len(all))
	defer func() {
		for _, r := range runners {
			if r != nil {
				_ = r.close(ctx) // what it measured is there
			}
		}
	}()
	for i, p := range all {
		res.Peers = append(res.Peers, outcome{Peer: p.name})
		if load.leaveOut != nil {
			if res.Peers[i].Left = load.leaveOut(p); res.Peers[i].Left != "" {
				continue
			}
		}
		say.now(load.name, p.name, "opens", 0, load.rounds)
		r, err := load.prepare(ctx, w, p)
		if err != nil {
			res.Peers[i].fail(0, err)
			continue
		}
		runners[i] = r
	}
	first := 0 // a round that does not count
	if load.cold {
		first = 1
	}
	for n := first; n <= load.rounds; n++ {
		for j := range all {
			i := (j + n) % len(all)
			if runners[i] == nil || res.Peers[i].Left != "" {
				continue
			}
			say.now(load.name, all[i].name, "round", n, load.rounds)
			row, err := runners[i].round(ctx)
			switch {
			case ctx.Err() != nil:
				return res, ctx.Err()
			case err != nil: // a peer that fails is a result too
				res.Peers[i].fail(n, err)
			case n > 0:
				res.Peers[i].Rounds = append(res.Peers[i].Rounds, row)
			}
			time.Sleep(pause)
		}
	}
	return res, nil
}

// pause lets what a round has left behind (timers, garbage, a server's own work)
// settle before the next one's.
const pause = 5 * time.Millisecond

// only says why peers other than those that do it have no part in a workload.
func only(reason string, does func(traits) bool) func(peer) string {
	return func(p peer) string {
		if does(p.is) {
			return ""
		}
		return reason
	}
}

// waits is for workloads in which keys are waited for.
var waits = only("it can't wait", func(t traits) bool { return !t.floor })
