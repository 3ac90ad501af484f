// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"
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
	renewed     int // the number of keys that are renewed beside the timed locks
	renewedTTL  time.Duration
	orderRounds int
	trial       time.Duration // of one rate of orders
	trials      int           // rates of orders
}

// full takes half an hour. short is a check that everything runs, and its figures mean little.
var (
	full = sizes{
		rounds: 20, operations: 1000, window: 300 * time.Millisecond, drained: 1000,
		held: []int{10_000, 100_000}, heldTTL: usualTTL, heldRounds: 3,
		renewed: 100_000, renewedTTL: time.Minute,
		orderRounds: 3, trial: 2 * time.Second, trials: 30,
	}
	short = sizes{
		rounds: 1, operations: 100, window: 40 * time.Millisecond, drained: 100,
		held: []int{1000}, heldTTL: 3 * time.Second, heldRounds: 1,
		renewed: 3000, renewedTTL: 3 * time.Second,
		orderRounds: 1, trial: 100 * time.Millisecond, trials: 3,
	}
)

// plan returns the workloads whose name contains only. An empty string selects all.
func plan(size sizes, only string) (loads []workload) {
	all := []workload{
		uncontended(size), firstUse(size), distinct(size), distinctFirstUse(size),
		hot(size, 1, 64), hot(size, 8, 8), hot(size, 32, 1),
		retaken(size), handoff(size), commands(size, 8), commands(size, 32), drain(size), pipeline(size, 0), pipeline(size, 500*time.Microsecond),
	}
	for _, keys := range size.held {
		all = append(all, keeping(size, keys))
	}
	all = append(all, renewing(size), orders(size))
	for _, load := range all {
		if strings.Contains(load.name, only) {
			loads = append(loads, load)
		}
	}
	return loads
}
