// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/asynclock/asynclock-go/asynclock"
)

// permitsOf is how many permits each semaphore has. Java's Recipes.PERMITS is the same.
const permitsOf = 10

const (
	redissonPermitsName = "Redisson, expirable"
	redissonSemaphore   = "Redisson: RSemaphore, whose permits never expire"
	redissonPermits     = "Redisson: RPermitExpirableSemaphore, for ten minutes and not renewed"
	curatorSemaphore    = "Curator: InterProcessSemaphoreV2"
)

var permit = locking{fmt.Sprintf("asynclock: Semaphore of %d, Acquire of one, no options", permitsOf), func(ctx context.Context, c *asynclock.Client, key string) (held, error) {
	s, err := c.Semaphore(key, permitsOf)
	if err != nil {
		return nil, err
	}
	return lease(s.Acquire(ctx, 1))
}}

func permitContestants(first ...contestant) []contestant {
	return append(first, ours(asynclockPeer.name, permit),
		inRedisson(redissonName, "semaphore", redissonSemaphore),
		inRedisson(redissonPermitsName, "permits", redissonPermits),
		inCurator("semaphore", curatorSemaphore))
}

// permitsAlone is a permit, nobody else.
func permitsAlone(size familySizes) (c comparison) {
	c.workload = workload{name: "permit alone", title: "Acquire and Unlock of one permit, one goroutine, nobody else", metrics: aloneMetrics, base: mutexName}
	c.contestants = permitContestants(theFloor, ourMutex)
	c.targets = []target{{of: mutexName, limit: 1.4}}
	c.inGo, c.inJava = aloneInGo(size, c.key), aloneInJava(size)
	return c
}

// permitsHandoff is one permit that passes from client to client. Others have all other permits
// throughout.
func permitsHandoff(size familySizes, clients int) (c comparison) {
	c.workload = workload{
		name: fmt.Sprintf("permit handoff %d", clients), title: fmt.Sprintf("Handoff of the one free permit of %d among %d clients, each of which holds it for a millisecond", permitsOf, clients),
		metrics: []metric{{Name: "p50", Unit: "µs"}, {Name: "p99", Unit: "µs"}, {Name: "commands", Unit: "per handoff"}},
		base:    mutexName,
	}
	c.contestants = permitContestants(ourMutex)
	c.targets = []target{{of: mutexName, limit: 1.2}, {metric: 2, limit: 2.1}}
	c.inGo = func(ctx context.Context, a arena, p peer) (runner, error) {
		return newCirculation(ctx, a, p, c.key(p.name), clients, size)
	}
	c.inJava = func(ctx context.Context, a arena, recipe, key string) (runner, error) {
		return newJavaCirculation(ctx, a, recipe, key, clients, size)
	}
	return c
}

// localName is the floor inside a process.
const localName = "x/sync/semaphore"

// crowdSize is how many goroutines want permits in a client.
const crowdSize = 64

// permitsCrowd is many goroutines of one client.
func permitsCrowd(size familySizes) (c comparison) {
	c.workload = workload{name: "permit crowd", title: fmt.Sprintf("%d goroutines of one client, %d permits: Acquire and Unlock", crowdSize, permitsOf), metrics: rates, base: localName}
	c.contestants = permitContestants(contestant{peer: inProcess})
	c.targets = []target{{limit: 400_000}, {of: localName, limit: 0.25}}
	c.inGo = crowdInGo(size, c.key, func() {})
	c.inJava = func(ctx context.Context, a arena, recipe, key string) (runner, error) {
		p, err := openJava(ctx, a.java, a.redis, a.zooKeeper, recipe, key)
		if err != nil {
			return nil, err
		}
		_, err = p.ask(ctx, "alone", size.warm)
		return steps{func(ctx context.Context) ([]float64, error) {
			return p.ask(ctx, "crowd", crowdSize, int(size.window.Milliseconds()))
		}, p.close}, err
	}
	return c
}

// permitsQueue is the same where each holder lets others run. Without that, a goroutine seldom finds
// that all permits are out.
func permitsQueue(size familySizes) (c comparison) {
	c.workload = workload{
		name: "permit queue", title: fmt.Sprintf("%d goroutines of one client, %d permits: Acquire, runtime.Gosched, Unlock", crowdSize, permitsOf),
		metrics: rates, base: localName,
	}
	c.contestants = []contestant{{peer: inProcess}, ours(asynclockPeer.name, permit)}
	c.targets = []target{{limit: 400_000}, {of: localName, limit: 0.25}}
	c.absent = "the peers go to the server for each permit: see permit crowd"
	c.inGo = crowdInGo(size, c.key, runtime.Gosched)
	return c
}

// inProcess is the floor of what passes permits inside a process.
var inProcess = peer{name: localName, setting: "golang.org/x/sync/semaphore, without a store"}

// crowdInGo has each goroutine do something while it has its permit.
func crowdInGo(size familySizes, key func(string) string, work func()) func(context.Context, arena, peer) (runner, error) {
	return func(ctx context.Context, a arena, p peer) (runner, error) {
		if p.name == localName {
			local := semaphore.NewWeighted(permitsOf)
			return crowdRate(size, func(ctx context.Context) error {
				if err := local.Acquire(ctx, 1); err != nil {
					return err
				}
				work()
				local.Release(1)
				return nil
			}, func(context.Context) error { return nil }), nil
		}
		one, taker, err := p.openWorker(ctx, a.world)
		if err != nil {
			return nil, err
		}
		own := key(p.name)
		return crowdRate(size, func(ctx context.Context) error {
			h, err := taker.lock(ctx, own)
			if err != nil {
				return err
			}
			work()
			return h.Unlock(ctx)
		}, one.close), nil
	}
}

// crowdRate counts what goroutines do in a while.
func crowdRate(size familySizes, do func(ctx context.Context) error, end func(context.Context) error) runner {
	return steps{func(ctx context.Context) ([]float64, error) {
		var count atomic.Int64
		var over atomic.Bool
		errs := make([]error, crowdSize)
		var running sync.WaitGroup
		start := time.Now()
		for i := range crowdSize {
			running.Go(func() {
				own := int64(0)
				for !over.Load() && errs[i] == nil {
					errs[i] = do(ctx)
					own++
				}
				count.Add(own)
			})
		}
		time.Sleep(size.window)
		over.Store(true)
		running.Wait()
		return []float64{float64(count.Load()) / time.Since(start).Seconds()}, errors.Join(errs...)
	}, end}
}
