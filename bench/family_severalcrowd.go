// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
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

// severalCrowd is several keys among many clients, as fast as they can.
func severalCrowd(size familySizes) (c comparison) {
	c.workload = workload{
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
	}
	c.contestants = []contestant{
		ours(asynclockPeer.name, lockingListed),
		inRedisson(redissonName, fmt.Sprintf("several %d of %d", severalTaken, severalAmong), "Redisson: RedissonMultiLock of RLocks, listed in one order by all clients"),
	}
	c.targets = []target{{metric: 4, limit: 10, always: true}, {metric: 5, limit: 0, always: true}}
	c.absent = "Curator is left out: its InterProcessMultiLock is as its user sorts the keys"
	c.inGo = func(ctx context.Context, a arena, p peer) (runner, error) {
		clients, err := openClients(ctx, p, a.world, severalClients)
		if err != nil {
			return nil, err
		}
		round := func(ctx context.Context) ([]float64, error) {
			return crowdOfSeveral(ctx, clients, c.key(p.name), size.crowded)
		}
		return steps{round, func(ctx context.Context) error { return closeClients(ctx, clients) }}, nil
	}
	c.inJava = func(ctx context.Context, a arena, recipe, key string) (runner, error) {
		p, err := openJava(ctx, a.java, a.redis, a.zooKeeper, recipe, key)
		if err != nil {
			return nil, err
		}
		ask := func(ctx context.Context, window time.Duration) ([]float64, error) {
			return p.ask(ctx, "waits", severalClients, int(window.Milliseconds()), int(severalHold.Microseconds()))
		}
		_, err = ask(ctx, size.window)
		return steps{func(ctx context.Context) ([]float64, error) {
			times, err := ask(ctx, size.crowded)
			return summarizeWaits(times, size.crowded), err
		}, p.close}, err
	}
	return c
}

// lockingListed takes keys that are listed with spaces between them.
var lockingListed = locking{"asynclock: LockAll, no options", func(ctx context.Context, c *asynclock.Client, keys string) (held, error) {
	m, err := c.LockAll(ctx, strings.Fields(keys))
	if err != nil {
		return nil, err
	}
	return m, nil
}}

// crowdOfSeveral has each client take keys over and over until the time is up. Waits that are under way then
// count as well. A wait that is cut short has lasted for stuckAfter.
func crowdOfSeveral(ctx context.Context, clients []client, key string, window time.Duration) ([]float64, error) {
	start := time.Now()
	ctx, cancel := context.WithDeadline(ctx, start.Add(window+stuckAfter))
	defer cancel()
	waits, errs := make([][]float64, len(clients)), make([]error, len(clients))
	var running sync.WaitGroup
	for i, c := range clients {
		running.Go(func() { // ends with the window, or with ctx
			random := rand.New(rand.NewPCG(uint64(window), uint64(i)))
			w, err := c.worker(ctx)
			for err == nil && time.Since(start) < window {
				asked := time.Now()
				var h held
				h, err = w.lock(ctx, someKeys(random, key))
				waits[i] = append(waits[i], micros(time.Since(asked)))
				if err == nil {
					time.Sleep(severalHold)
					err = h.Unlock(context.WithoutCancel(ctx))
				}
			}
			if ctx.Err() == nil {
				errs[i] = err
			}
		})
	}
	running.Wait()
	var all []float64
	for _, some := range waits {
		all = append(all, some...)
	}
	return summarizeWaits(all, window), errors.Join(errs...)
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
