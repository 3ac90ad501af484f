// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// sizes say how much is measured.
type sizes struct {
	rounds      int           // of each workload and peer
	operations  int           // timed one by one in a round
	window      time.Duration // of a round in which a rate is measured
	drained     int           // waiters
	held        []int         // keys
	heldTTL     time.Duration
	heldRounds  int
	orderRounds int
	trial       time.Duration // of one rate of orders
	trials      int           // rates of orders

	// These are of families.
	warm      int           // operations before the first round, in Java
	passes    int           // handoffs in a round
	readers   int           // clients that read together
	many      int           // readers beside a release
	observers int           // of an election
	crowded   time.Duration // of a round in which the longest wait is looked for
}

// full takes half an hour. short is a check that everything runs, and its figures mean little.
var (
	full = sizes{
		rounds: 20, operations: 1000, window: 300 * time.Millisecond, drained: 1000,
		held: []int{10_000, 100_000}, heldTTL: usualTTL, heldRounds: 3,
		orderRounds: 3, trial: 2 * time.Second, trials: 30,
	}
	short = sizes{
		rounds: 1, operations: 100, window: 40 * time.Millisecond, drained: 100,
		held: []int{1000}, heldTTL: 3 * time.Second, heldRounds: 1,
		orderRounds: 1, trial: 100 * time.Millisecond, trials: 3,
	}
	fullFamilies = sizes{
		rounds: 5, operations: 500, warm: 2000, window: 200 * time.Millisecond,
		passes: 100, readers: 100, many: 1000, observers: 100, crowded: 12 * time.Second,
	}
	shortFamilies = sizes{
		rounds: 1, operations: 50, warm: 50, window: 20 * time.Millisecond,
		passes: 10, readers: 10, many: 100, observers: 10, crowded: 200 * time.Millisecond,
	}
)

// mutexes are the workloads of a key that one owner has at a time.
func mutexes(size sizes) (all []workload) {
	all = append(all, lonely(size)...)
	for _, of := range [][2]int{{1, 64}, {8, 8}, {32, 1}} {
		all = append(all, hot(size, of[0], of[1]))
	}
	all = append(all, retaken(size), handoff(size), commands(size, 8), commands(size, 32), drain(size),
		pipeline(size, 0), pipeline(size, 500*time.Microsecond))
	for _, keys := range size.held {
		all = append(all, keeping(size, keys))
	}
	all = append(all, orders(size))
	for i := range all {
		all[i].rounds = cmp.Or(all[i].rounds, size.rounds)
		if all[i].peers == nil {
			all[i].peers = locks
		}
	}
	return all
}

// lonely are workloads in which nobody wants another's key.
func lonely(size sizes) []workload {
	return []workload{
		{name: "uncontended", title: "Lock and Unlock, one goroutine, nobody else", metrics: latencies, prepare: alone(size, sameKey)},
		{name: "first use", title: "Lock and Unlock, one goroutine, each key used once", metrics: latencies, prepare: alone(size, freshKey)},
		{name: "distinct", title: "256 goroutines of one client, each with its own key", metrics: distinctMetrics, prepare: distinct(size, sameKey)},
		{name: "distinct first use", title: "256 goroutines of one client, each key used once", metrics: distinctMetrics, prepare: distinct(size, freshKey)},
	}
}

var distinctMetrics = []metric{
	{"rate", "locks/s", true},
	{Name: "longest wait", Unit: "ms"},
	{Name: "client's CPU", Unit: "µs/lock"},
	{Name: "Redis's CPU", Unit: "µs/lock"},
}

// hot is clients whose goroutines all request the same key and hold it for no time.
func hot(size sizes, clients, goroutines int) workload {
	return workload{
		name:  fmt.Sprintf("hot %d × %d", clients, goroutines),
		title: fmt.Sprintf("One hot key: %s of %s each, held for no time", count(clients, "client"), count(goroutines, "goroutine")),
		metrics: []metric{
			{"rate", "locks/s", true},
			{Name: "longest wait", Unit: "ms"},
			{Name: "longest a client goes without", Unit: "ms"},
			{Name: "turns of another meanwhile"},
			{"Jain's index", "", true},
			{Name: "stuck", Unit: "goroutines"},
		},
		leaveOut: waits,
		prepare:  contended(size, clients, goroutines),
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// waits is for workloads in which peers wait for keys.
var waits = only("it can't wait", func(t traits) bool { return !t.floor })

// retaken is one goroutine that takes the same key again and again, which nobody else requests. It
// measures the gain for a client that retains the key.
func retaken(size sizes) workload {
	retained := peer{
		name: "asynclock, retained", setting: "redisstore.Open and asynclock.New with WithRetention(time.Minute)", is: traits{own: true},
		open: func(w world) *client { return openAsynclock(w, asynclock.WithRetention(time.Minute)) },
	}
	return workload{
		name: "retaken", title: "Taking a key again that nobody else wants, one goroutine",
		metrics: []metric{{"rate", "locks/s", true}},
		base:    asynclockPeer.name,
		peers:   []peer{asynclockPeer, retained},
		prepare: rateOfOne(size),
	}
}

// commands counts the cost of a hot key on the wire: all commands of all clients, divided by how
// often the key changes hands.
func commands(size sizes, clients int) workload {
	return workload{
		name:    fmt.Sprintf("commands %d", clients),
		title:   fmt.Sprintf("Commands per handoff: one hot key, %d clients with a goroutine each", clients),
		metrics: []metric{{Name: "commands", Unit: "per lock"}},
		rounds:  max(size.rounds/4, 1),
		leaveOut: func(p peer) string {
			if p.is.etcd {
				return "it does not speak to Redis"
			}
			return waits(p)
		},
		prepare: countedKey(size, clients),
	}
}
