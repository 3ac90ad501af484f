// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

const (
	redissonRead = "Redisson: RReadWriteLock, readLock"
	curatorRead  = "Curator: InterProcessReadWriteLock, readLock"
	keepsNothing = "Redisson and Curator keep no key that was given back: it costs them what the first workload says"
)

// readAlone is a reader, nobody else.
func readAlone(size familySizes) (c comparison) {
	c.workload = workload{name: "read alone", title: "RLock and Unlock, one goroutine, nobody else", metrics: aloneMetrics, base: mutexName}
	c.contestants = []contestant{
		theFloor, ourMutex, ours(asynclockPeer.name, shared),
		inRedisson(redissonName, "read", redissonRead), inCurator("read", curatorRead),
	}
	c.targets = []target{{of: mutexName, limit: 1.1}}
	c.inGo, c.inJava = aloneInGo(size, c.key), aloneInJava(size)
	return c
}

// readBeside says how the workload differs in Java: see besideInJava.
const readBeside = "; the other reader is another client"

// rwMutexName is the floor inside a process.
const rwMutexName = "sync.RWMutex"

// readMore is one more reader where others read already.
func readMore(size familySizes) (c comparison) {
	c.workload = workload{name: "read more", title: "One more reader in a client that reads the key already: RLock and Unlock, one goroutine", metrics: rates, base: rwMutexName}
	c.contestants = []contestant{
		{peer: peer{name: rwMutexName, setting: "one more reader of it, without a store"}},
		ours(asynclockPeer.name, shared),
		inRedisson(redissonName, "read", redissonRead+readBeside), inCurator("read", curatorRead+readBeside),
	}
	c.targets = []target{{limit: 1_000_000}}
	c.inGo = func(ctx context.Context, a arena, p peer) (runner, error) {
		if p.name == rwMutexName {
			return readRWMutex(size), nil
		}
		return readRate(ctx, size, a, p, c.key(p.name), true)
	}
	c.inJava = besideInJava(size)
	return c
}

func readRWMutex(size familySizes) runner {
	var m sync.RWMutex
	m.RLock() // for good: the other reader
	return steps{func(context.Context) ([]float64, error) {
		rate, err := rateOf(size.window, func() error {
			m.RLock()
			m.RUnlock() //nolint:staticcheck // an empty section is what is measured
			return nil
		})
		return []float64{rate}, err
	}, func(context.Context) error { return nil }}
}

// readRate reads over and over, beside another reader of the client or not.
func readRate(ctx context.Context, size familySizes, a arena, p peer, key string, beside bool) (runner, error) {
	c, work, err := p.openWorker(ctx, a.world)
	if err != nil {
		return nil, err
	}
	return steps{func(ctx context.Context) ([]float64, error) {
		other := held(nobody{})
		if beside { // anew in each round: a tenure from before the client's subscription would admit nobody
			if other, err = work.lock(ctx, key); err != nil {
				return nil, err
			}
		}
		rate, err := rateOf(size.window, func() error { return pair(ctx, work, key) })
		return []float64{rate}, errors.Join(err, other.Unlock(ctx))
	}, c.close}, nil
}

// nobody holds nothing.
type nobody struct{}

func (nobody) Unlock(context.Context) error { return nil }

// besideInJava is readRate there. A thread of Java's that has the lock already would only count, so
// the other reader is another client.
func besideInJava(size familySizes) func(ctx context.Context, a arena, recipe, key string) (runner, error) {
	return func(ctx context.Context, a arena, recipe, key string) (runner, error) {
		other, err := openJava(ctx, a.java, a.redis, a.zooKeeper, recipe, key)
		if err != nil {
			return nil, err
		}
		if _, err := other.ask(ctx, "hold", 1); err != nil {
			return nil, err
		}
		p, err := openJava(ctx, a.java, a.redis, a.zooKeeper, recipe, key)
		if err != nil {
			return nil, err
		}
		_, err = p.ask(ctx, "alone", size.warm)
		return steps{func(ctx context.Context) ([]float64, error) {
			return p.ask(ctx, "crowd", 1, int(size.window.Milliseconds()))
		}, func(ctx context.Context) error {
			if err := other.close(ctx); err != nil {
				return err
			}
			return p.close(ctx)
		}}, err
	}
}

// readRetained is a reader of a key that the client has kept.
func readRetained(size familySizes) (c comparison) {
	c.workload = workload{name: "read again", title: "RLock and Unlock of a key that the client retains, one goroutine", metrics: rates}
	c.contestants = []contestant{
		ours(asynclockPeer.name, locking{"asynclock: RLock, WithRetention of a minute", func(ctx context.Context, c *asynclock.Client, key string) (held, error) {
			return lease(c.RLock(ctx, key, asynclock.WithRetention(time.Minute)))
		}}),
	}
	c.targets = []target{{limit: 1_000_000}}
	c.absent = keepsNothing
	c.inGo = func(ctx context.Context, a arena, p peer) (runner, error) {
		return readRate(ctx, size, a, p, c.key(p.name), false)
	}
	return c
}
