// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A workload is an activity with locks, and the metrics of it.
type workload struct {
	name    string
	title   string
	metrics []metric // peers are compared by the first one
	peers   []peer
	prepare prepare
	inJava  prepare // for peers there
	rounds  int
	// leaveOut says why a peer does not take part; empty: it takes part.
	leaveOut func(peer) string
	cold     bool          // no round to warm up
	limit    time.Duration // after this time a round hangs; 0: twenty seconds
	servers  int           // how many of Redis it needs at least; 0: one
	base     string        // the row that others are compared to; empty: the floor and the best peer
	targets  []target
	absent   string // the peers that have no such thing, for the table
}

// A prepare makes a workload ready for the peer of a stage. It and the round may end by check.
type prepare func(ctx context.Context, s *stage) round

// A round runs the workload once and returns a value for each metric, or NaN if there is none.
type round func(ctx context.Context) []float64

// A metric is one number that a round yields.
type metric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// HigherIsBetter distinguishes rates from times.
	HigherIsBetter bool `json:"higherIsBetter"`
}

// A stage is what a workload has for one peer.
type stage struct {
	world
	ends

	peer  peer
	key   string // of this peer and workload; also a name of a node in ZooKeeper
	round round
}

// ends are what has to be done when something is over.
type ends []func(context.Context) error

// after adds an end. The last one comes first.
func (e *ends) after(end func(context.Context) error) { *e = append(*e, end) }

func (e *ends) close(ctx context.Context) (err error) {
	for _, end := range slices.Backward(*e) {
		err = errors.Join(err, end(ctx))
	}
	return err
}

// life returns a context that ends with the stage.
func (s *stage) life(ctx context.Context) context.Context {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.after(func(context.Context) error {
		stop()
		return nil
	})
	return ctx
}

// measure runs a workload for its peers: one round of each in turn, and each time another peer
// comes first. Other load of the machine then affects all of them. One round of each comes before,
// to warm up.
func measure(ctx context.Context, w world, load workload) (result, error) {
	res := result{Workload: load.name, Title: load.title, Metrics: load.metrics, Base: load.base, load: load}
	stages := make([]*stage, len(load.peers))
	w.servers = w.servers[:load.servers]
	defer func() {
		for _, s := range stages {
			ending, cancel := context.WithTimeout(ctx, 10*time.Second)
			_ = s.close(ending) // the measured values are complete
			cancel()
		}
	}()
	for i, p := range load.peers {
		stages[i] = &stage{world: w, peer: p, key: strings.ReplaceAll("bench "+load.name+" "+p.name, " ", "-")}
		res.Peers = append(res.Peers, outcome{Peer: p.name, Left: load.left(w, p)})
		if res.Peers[i].Left == "" {
			res.Peers[i].fail(0, load.open(ctx, stages[i]), p)
		}
	}
	first := 0 // round 0 does not count
	if load.cold {
		first = 1
	}
	for n := first; n <= load.rounds; n++ {
		for j := range stages {
			i := (j + n) % len(stages)
			o := &res.Peers[i]
			if o.Left != "" {
				continue
			}
			values, err := load.run(ctx, stages[i].round)
			if ctx.Err() != nil {
				return res, ctx.Err()
			}
			if err == nil && n > 0 {
				o.Rounds = append(o.Rounds, values)
			}
			o.fail(n, err, stages[i].peer) // a failing peer is a result too
			time.Sleep(pause)
		}
	}
	return res, nil
}

// pause separates rounds, so that the remains of one (timers, garbage, a server's own work) do not
// affect the next.
const pause = 5 * time.Millisecond

// left says why a peer does not take part.
func (load *workload) left(w world, p peer) string {
	if why := w.missing[p.needs]; why != "" {
		return "not measured: " + why
	}
	if load.leaveOut != nil {
		return load.leaveOut(p)
	}
	return ""
}

// open prepares the workload on a stage.
func (load *workload) open(ctx context.Context, s *stage) error {
	prepare := load.prepare
	if s.peer.recipe != "" {
		prepare = load.inJava
	}
	ctx, cancel := context.WithTimeout(ctx, max(load.limit, time.Minute))
	defer cancel()
	return catch(func() { s.round = prepare(ctx, s) })
}

// run runs one round and cuts it short if it hangs, as some peers do.
func (load *workload) run(ctx context.Context, one round) (values []float64, err error) {
	limit := cmp.Or(load.limit, 20*time.Second)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = catch(func() { values = one(ctx) })
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it hung: cut short after %v: %w", limit, err)
	}
	return values, err
}

// only gives the reason why all peers without a trait do not take part in a workload.
func only(reason string, does func(traits) bool) func(peer) string {
	return func(p peer) string {
		if does(p.is) {
			return ""
		}
		return reason
	}
}
