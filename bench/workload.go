// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// A workload is an activity with locks, and the metrics of it.
type workload struct {
	name    string
	title   string
	metrics []metric // peers are compared by the first one
	rounds  int
	peers   []peer // nil: those of the run
	// leaveOut says why a peer does not take part; empty: it takes part.
	leaveOut func(peer) string
	prepare  func(ctx context.Context, w world, p peer) (runner, error)
	cold     bool          // no round to warm up
	limit    time.Duration // after this time a round hangs; 0: twenty seconds
	base     string        // the row that others are compared to; empty: the floor and the best peer
}

// A metric is one number that a round yields.
type metric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// HigherIsBetter distinguishes rates from times.
	HigherIsBetter bool `json:"higherIsBetter"`
}

// A runner is a workload prepared for one peer.
type runner interface {
	// round runs the workload once and returns a value for each metric, or NaN if there is none.
	round(ctx context.Context) ([]float64, error)
	close(ctx context.Context) error
}

// A result is the outcome of a workload: for each peer, the values of each round.
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
	Left   string // the reason why there are no rounds
	Failed bool   // whether the reason is a failure
}

// fail records that a peer could not continue. Its earlier rounds do not count, because the defect
// may have affected them too.
func (o *outcome) fail(round int, err error) {
	o.Rounds, o.Failed = nil, true
	o.Left = fmt.Sprintf("failed in round %d: %v", round, err)
}

// measure runs a workload for all peers: one round of each in turn, and each time another peer
// comes first. Other load of the machine then affects all of them. One round of each comes before,
// to warm up.
func measure(ctx context.Context, say *progress, w world, load workload, all []peer) (result, error) {
	if load.peers != nil {
		all = load.peers
	}
	res := result{Workload: load.name, Title: load.title, Metrics: load.metrics, Base: load.base}
	runners := make([]runner, len(all))
	defer func() {
		for _, r := range runners {
			if r != nil {
				_ = r.close(ctx) // the measured values are complete
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
	first := 0 // round 0 does not count
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
			row, err := load.round(ctx, runners[i])
			switch {
			case ctx.Err() != nil:
				return res, ctx.Err()
			case err != nil: // a failing peer is a result too
				res.Peers[i].fail(n, err)
			case n > 0:
				res.Peers[i].Rounds = append(res.Peers[i].Rounds, row)
			}
			time.Sleep(pause)
		}
	}
	return res, nil
}

// round runs one round and cuts it short if it hangs, as some peers do.
func (load workload) round(ctx context.Context, r runner) ([]float64, error) {
	limit := cmp.Or(load.limit, 20*time.Second)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	row, err := r.round(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it hung: cut short after %v: %w", limit, err)
	}
	return row, err
}

// pause separates rounds, so that the remains of one (timers, garbage, a server's own work) do not
// affect the next.
const pause = 5 * time.Millisecond

// only gives the reason why all peers without a trait do not take part in a workload.
func only(reason string, does func(traits) bool) func(peer) string {
	return func(p peer) string {
		if does(p.is) {
			return ""
		}
		return reason
	}
}

// measuresOnce is for workloads in which both floors would be the same.
var measuresOnce = only("it is as the floor here", func(t traits) bool { return !t.lowest })

// waits is for workloads in which peers wait for keys.
var waits = only("it can't wait", func(t traits) bool { return !t.floor })
