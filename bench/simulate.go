// SPDX-License-Identifier: Apache-2.0

package main

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// The assumptions of the simulation. The first three are CPU times of a Redis server, as measured;
// see docs/performance.md.
const (
	lockCommand = 8600 * time.Nanosecond // half of Lock and Unlock
	heartbeat   = 20 * time.Microsecond  // of a waiter, every 1.5 s
	renewalOf   = 7200 * time.Nanosecond // one key

	simulatedTTL = 15 * time.Second
	renewalCall  = 64  // keys in a call while on time
	lateCall     = 512 // keys in a call once later than a fifteenth of the TTL
	buckets      = 256 // lanes in a Cluster
)

// A scenario is a deployment: clients that each hold keys, and together lock at random times.
type scenario struct {
	nodes, clients, held int // held by each client
	locks                int // Lock and Unlock a second, all clients together
	waiting              int // waiting calls of all clients together
	trip                 time.Duration
}

var scenarios = []scenario{
	{nodes: 1, clients: 10, locks: 10_000, trip: 200 * time.Microsecond},
	{nodes: 1, clients: 10, locks: 40_000, trip: 200 * time.Microsecond},
	{nodes: 1, clients: 1, held: 100_000, locks: 10_000, trip: 200 * time.Microsecond},
	{nodes: 1, clients: 1, held: 100_000, locks: 10_000, trip: 20 * time.Millisecond},
	{nodes: 1, clients: 100, held: 1000, locks: 10_000, trip: 200 * time.Microsecond},
	{nodes: 1, clients: 500, held: 1000, locks: 5000, trip: 200 * time.Microsecond},
	{nodes: 1, clients: 1000, locks: 10_000, waiting: 10_000, trip: 200 * time.Microsecond},
	{nodes: 6, clients: 1, held: 100_000, locks: 60_000, trip: 200 * time.Microsecond},
	{nodes: 6, clients: 100, held: 10_000, locks: 60_000, trip: 200 * time.Microsecond},
}

// simulate prints the outlook of one node in each scenario.
func simulate(to io.Writer) error {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"nodes", "clients", "keys held", "locks/s", "waits", "round trip", "busy", "command p50", "p99", "latest renewal"})
	for _, s := range scenarios {
		r := s.run(20 * time.Second)
		t.AppendRow(table.Row{
			s.nodes, s.clients, s.clients * s.held, s.locks, s.waiting, s.trip,
			fmt.Sprintf("%.0f %%", 100*r.busy), r.p50, r.p99, r.latest,
		})
	}
	_, err := fmt.Fprintln(to, t.RenderMarkdown())
	return err
}

type outlook struct {
	busy             float64
	p50, p99, latest time.Duration
}

// A job is work for the server. A job that renews belongs to a lane, which sends the next job when
// this one is answered.
type job struct {
	arrives time.Duration
	takes   time.Duration
	lane    *simulatedLane
}

// A simulatedLane is a client's renewals that share a connection: the keys that came due at one
// time.
type simulatedLane struct {
	due  time.Duration
	left int
}

// run simulates one node for span. The server handles jobs in the order of their arrival.
func (s scenario) run(span time.Duration) outlook {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same numbers in each run
	var jobs timeline
	poisson := func(perSecond float64, takes time.Duration) {
		for at := 0.0; perSecond > 0; {
			at += random.ExpFloat64() / perSecond
			if at > span.Seconds() {
				return
			}
			heap.Push(&jobs, job{arrives: time.Duration(at * float64(time.Second)), takes: takes})
		}
	}
	poisson(2*float64(s.locks)/float64(s.nodes), lockCommand)
	poisson(float64(s.waiting)/1.5/float64(s.nodes), heartbeat)
	s.plan(&jobs, random, span)

	var o outlook
	var free, busy time.Duration
	var waits []time.Duration
	for len(jobs) > 0 {
		j := heap.Pop(&jobs).(job)
		free = max(free, j.arrives) + j.takes
		busy += j.takes
		if j.lane == nil {
			if j.takes == lockCommand {
				waits = append(waits, free-j.arrives+s.trip)
			}
			continue
		}
		o.latest = max(o.latest, free-j.lane.due)
		if next, ok := j.lane.next(free + s.trip); ok {
			heap.Push(&jobs, next)
		}
	}
	o.busy = busy.Seconds() / max(span, free).Seconds()
	slices.Sort(waits)
	o.p50, o.p99 = waits[len(waits)/2].Round(time.Microsecond), waits[len(waits)*99/100].Round(time.Microsecond)
	o.latest = o.latest.Round(time.Millisecond)
	return o
}

// plan sets when renewals begin. Each key is renewed a third of the TTL after its last renewal, on
// a grid of a fifteenth. The grid has a random start for each client, and another start for each
// lane.
func (s scenario) plan(jobs *timeline, random *rand.Rand, span time.Duration) {
	lanes := 1
	if s.nodes > 1 {
		lanes = buckets / s.nodes
	}
	const grid, perRound = simulatedTTL / 15, 5
	keys := s.held / perRound / s.nodes / lanes // due together
	if keys == 0 && s.held > 0 {
		keys = 1
	}
	for range s.clients * lanes * min(s.held, 1) {
		for at := time.Duration(random.Int64N(int64(grid))); at < span; at += grid {
			l := &simulatedLane{due: at, left: keys}
			if j, ok := l.next(l.due); ok {
				heap.Push(jobs, j)
			}
		}
	}
}

// next returns the lane's next call.
func (l *simulatedLane) next(at time.Duration) (job, bool) {
	n := min(l.left, renewalCall)
	if at-l.due >= simulatedTTL/15 {
		n = min(l.left, lateCall)
	}
	l.left -= n
	return job{arrives: at, takes: time.Duration(n) * renewalOf, lane: l}, n > 0
}

// A timeline is jobs in the order of their arrival.
type timeline []job

func (t timeline) Len() int           { return len(t) }
func (t timeline) Less(i, j int) bool { return t[i].arrives < t[j].arrives }
func (t timeline) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timeline) Push(x any)        { *t = append(*t, x.(job)) }

// Pop implements heap.Interface.
func (t *timeline) Pop() any {
	last := len(*t) - 1
	j := (*t)[last]
	*t = (*t)[:last]
	return j
}
