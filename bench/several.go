// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// The clients of several crowd, and the keys of which each takes some. Those of Java's Recipes are the same.
const (
	severalClients = 16
	severalAmong   = 20
	severalTaken   = 3
	severalHold    = time.Millisecond
)

// stuckAfter is how long a wait lasts that counts as stuck.
const stuckAfter = 10 * time.Second

// oursAll takes several keys, which follow from one.
func oursAll(keys func(key string) []string) peer {
	return ours(asynclockPeer.name, "asynclock: LockAll, no options", func(ctx context.Context, c *asynclock.Client, key string) (held, error) {
		return lease(c.LockAll(ctx, keys(key)))
	})
}

// numbered returns n keys.
func numbered(key string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = key + strconv.Itoa(i)
	}
	return keys
}

// severalCrowd is several keys among many clients, as fast as they can.
func severalCrowd(size sizes) workload {
	return workload{
		name: "several crowd",
		title: fmt.Sprintf("%d clients, each of which takes %d of %d keys at random, holds them for a millisecond and gives them back, for %v",
			severalClients, severalTaken, severalAmong, size.crowded),
		metrics: []metric{
			{"rate", "a second", true},
			{Name: "p50", Unit: "ms"},
			{Name: "p99", Unit: "ms"},
			{Name: "longest", Unit: "ms"},
			{Name: "longest / p50"},
			{Name: "stuck", Unit: "waits"},
		},
		cold: true,
		peers: []peer{
			oursAll(strings.Fields),
			inRedisson(redissonName, fmt.Sprintf("several %d of %d", severalTaken, severalAmong), "Redisson: RedissonMultiLock of RLocks, listed in one order by all clients"),
		},
		targets: []target{{metric: 4, limit: 10, always: true}, {metric: 5, limit: 0, always: true}},
		absent:  "Curator is left out: its InterProcessMultiLock is as its user sorts the keys",
		prepare: func(_ context.Context, s *stage) round {
			workers := s.workers(severalClients, 1)
			return func(ctx context.Context) []float64 {
				return summarizeWaits(slices.Concat(crowdOf(ctx, workers, size.crowded, severalHold, func(random *rand.Rand) string {
					return someKeys(random, s.key)
				})...), size.crowded)
			}
		},
		inJava: func(ctx context.Context, s *stage) round {
			p := s.javaPeer(ctx)
			ask := func(ctx context.Context, window time.Duration) []float64 {
				return p.ask(ctx, "waits", severalClients, int(window.Milliseconds()), int(severalHold.Microseconds()))
			}
			ask(ctx, size.window)
			return func(ctx context.Context) []float64 { return summarizeWaits(ask(ctx, size.crowded), size.crowded) }
		},
	}
}

// crowdOf has each worker take keys over and over until the time is up, and returns the waits of each in µs.
// Those that are under way then count as well. A wait that is cut short has lasted for stuckAfter.
func crowdOf(ctx context.Context, workers []locker, window, hold time.Duration, key func(*rand.Rand) string) [][]float64 {
	start := time.Now()
	ctx, cancel := context.WithDeadline(ctx, start.Add(window+stuckAfter))
	defer cancel()
	waits := make([][]float64, len(workers))
	together(len(workers), func(i int) {
		random := rand.New(rand.NewPCG(uint64(window), uint64(i)))
		for time.Since(start) < window {
			asked := time.Now()
			h, err := workers[i](ctx, key(random))
			waits[i] = append(waits[i], micros(time.Since(asked)))
			if err != nil && ctx.Err() != nil {
				return
			}
			check(err)
			time.Sleep(hold)
			check(h.Unlock(context.WithoutCancel(ctx)))
		}
	})
	return waits
}

// someKeys lists keys at random, each once.
func someKeys(random *rand.Rand, key string) string {
	var keys []string
	for _, n := range random.Perm(severalAmong)[:severalTaken] {
		keys = append(keys, key+":"+strconv.Itoa(n))
	}
	return strings.Join(keys, " ")
}

// summarizeWaits returns the metrics of a crowd from its waits, in µs.
func summarizeWaits(waits []float64, window time.Duration) []float64 {
	stuck := 0
	for _, w := range waits {
		if w >= micros(stuckAfter) {
			stuck++
		}
	}
	q := quantiles(waits, 0.5, 0.99, 1)
	return []float64{float64(len(waits)) / window.Seconds(), q[0] / 1e3, q[1] / 1e3, q[2] / 1e3, q[2] / q[0], float64(stuck)}
}
