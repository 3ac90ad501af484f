// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"
)

// keeping measures the cost of many held keys for the one process that holds them. Each round is a
// process of its own, so that nothing else counts.
func keeping(size sizes, keys int) workload {
	return workload{
		name:  fmt.Sprintf("held %d", keys),
		title: fmt.Sprintf("%d keys held by one client, TTL %v", keys, size.heldTTL),
		metrics: []metric{
			{Name: "heap", Unit: "B/key"},
			{Name: "goroutines", Unit: "per key"},
			{Name: "renewals", Unit: "commands/s"},
			{Name: "client's CPU", Unit: "ms/s"},
			{Name: "Redis's CPU", Unit: "ms/s"},
			{Name: "renewing", Unit: "ms per round"},
			{Name: "lock p99 without", Unit: "µs"},
			{Name: "lock p99 meanwhile", Unit: "µs"},
		},
		rounds: size.heldRounds,
		leaveOut: func(p peer) string {
			switch {
			case !p.is.renews:
				return "it renews nothing by itself"
			case keys > p.is.holds && p.is.holds > 0:
				return fmt.Sprintf("measured with up to %d keys", p.is.holds)
			}
			return ""
		},
		prepare: func(_ context.Context, w world, p peer) (runner, error) {
			w.ttl = size.heldTTL
			return keeper{w, p, keys}, nil
		},
		cold:  true,
		limit: 15*time.Second + 6*size.heldTTL + time.Duration(keys)*time.Millisecond/2,
	}
}

// A keeper runs this program again as the process that holds the keys.
type keeper struct {
	world world
	peer  peer
	keys  int
}

func (k keeper) round(ctx context.Context) ([]float64, error) {
	process, err := again(ctx, "keeper", k.peer, k.world, k.keys)
	if err != nil {
		return nil, err
	}
	said, err := process.Output()
	if err != nil {
		return nil, err
	}
	var cost heldCost
	if err := json.Unmarshal(said, &cost); err != nil {
		return nil, err
	}
	keys := float64(k.keys)
	row := []float64{
		cost.Bytes / keys, cost.Goroutines / keys, cost.Commands / cost.Seconds,
		1000 * cost.ClientCPU / cost.Seconds, 1000 * cost.RedisCPU / cost.Seconds,
		1000 * cost.Renewing, cost.Before, cost.Meanwhile,
	}
	if k.peer.is.etcd { // its commands are not counted, and Redis has no part in it
		row[2], row[4] = math.NaN(), math.NaN()
	}
	for i, v := range row {
		if v < 0 {
			row[i] = math.NaN()
		}
	}
	return row, nil
}

func (keeper) close(context.Context) error { return nil }

// heldCost is the report of a keeper. Times are in seconds; negative means unknown.
type heldCost struct {
	Bytes, Goroutines float64 // increase over the process without keys
	Seconds           float64 // length of the observation, for the fields below
	Commands          float64
	ClientCPU         float64
	RedisCPU          float64
	Renewing          float64 // in each third of the TTL, the time in which a renewal was under way
	Before, Meanwhile float64 // µs: p99 of Lock and Unlock of another key
}

// watched is how many renewals of each key are observed.
const watched = 2

// keep does the work of a keeper process.
func keep(ctx context.Context, p peer, w world, keys int) error {
	cpu, err := newCPUMeter(w)
	if err != nil {
		return err
	}
	k, err := newHolding(ctx, p, w)
	if err != nil {
		return err
	}
	cost := heldCost{Before: k.probe(ctx, probing, nil)}
	bytes, goroutines := k.size()
	leases, err := k.take(ctx, keys)
	if err != nil {
		return err
	}
	after, more := k.size()
	cost.Bytes, cost.Goroutines = after-bytes, more-goroutines

	length := watched * w.ttl / 3
	began, err := cpu.now(ctx)
	if err != nil {
		return err
	}
	seen, err := k.watch(ctx, length)
	if err != nil {
		return err
	}
	ended, err := cpu.now(ctx)
	if err != nil {
		return err
	}
	used := ended.since(began)
	cost.Commands, cost.ClientCPU, cost.RedisCPU = float64(seen.Commands), used.client, used.redis
	cost.Renewing = -1
	if k.renewals != nil {
		cost.Renewing = total(seen.Spans).Seconds() / watched
	}
	cost.Meanwhile = k.probe(ctx, length, k.renewals)
	cost.Seconds = length.Seconds()
	if err := json.NewEncoder(os.Stdout).Encode(cost); err != nil {
		return err
	}
	_ = leases // held until here; the keys expire, or end with the server
	return nil
}

// probing is how long the cost of a lock is measured before there are keys.
const probing = 2 * time.Second
