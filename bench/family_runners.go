// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// latencies are the metrics of what is timed one by one.
var latencies = []metric{{Name: "p50", Unit: "µs"}, {Name: "p90", Unit: "µs"}, {Name: "p99", Unit: "µs"}}

// aloneMetrics are those of what one caller does, nobody else. The server's time is that of its scripts.
var aloneMetrics = append(slices.Clone(latencies), metric{Name: "server", Unit: "µs"})

// rates are the metric of what is done over and over for a while.
var rates = []metric{{"rate", "a second", true}}

// summarize returns the values for latencies.
func summarize(times []float64) []float64 { return quantiles(times, 0.5, 0.9, 0.99) }

// steps is a runner made of functions.
type steps struct {
	run func(ctx context.Context) ([]float64, error)
	end func(ctx context.Context) error
}

func (s steps) round(ctx context.Context) ([]float64, error) { return s.run(ctx) }
func (s steps) close(ctx context.Context) error              { return s.end(ctx) }

// ours is a contestant that is asynclock, without options but those that the workload is about.
func ours(name string, lock locking) contestant {
	return contestant{peer: peer{
		name:    name,
		setting: lock.setting,
		open: func(_ context.Context, w world) (client, error) {
			a, err := openAsynclock(w)
			return &familyClient{a, lock.lock}, err
		},
	}}
}

// A locking is what a client of asynclock is asked for.
type locking struct {
	setting string
	lock    func(ctx context.Context, c *asynclock.Client, key string) (held, error)
}

// lease is for locking: it returns no nil *Lease in an interface.
func lease(l *asynclock.Lease, err error) (held, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

var (
	exclusive = locking{"asynclock: Lock, no options", func(ctx context.Context, c *asynclock.Client, key string) (held, error) {
		return lease(c.Lock(ctx, key))
	}}
	shared = locking{"asynclock: RLock, no options", func(ctx context.Context, c *asynclock.Client, key string) (held, error) {
		return lease(c.RLock(ctx, key))
	}}
)

// ourMutex is what others are compared to.
var ourMutex = ours(mutexName, exclusive)

// theFloor is the same as that of the mutexes' bench.
var theFloor = contestant{peer: floorPeer}

type familyClient struct {
	*asynclockClient

	take func(ctx context.Context, c *asynclock.Client, key string) (held, error)
}

func (f *familyClient) worker(context.Context) (worker, error) { return f, nil }

func (f *familyClient) lock(ctx context.Context, key string) (held, error) {
	return f.take(ctx, f.locks, key)
}

// aloneInGo times the operations of one goroutine, nobody else.
func aloneInGo(size familySizes, key func(contestant string) string) func(context.Context, arena, peer) (runner, error) {
	return func(ctx context.Context, a arena, p peer) (runner, error) {
		c, work, err := p.openWorker(ctx, a.world)
		if err != nil {
			return nil, err
		}
		server, err := newCPUMeter(a.world)
		if err != nil {
			return nil, err
		}
		own := key(p.name)
		alone := &latency{client: c, worker: work, key: func(int) string { return own }, times: make([]float64, size.operations)}
		return steps{func(ctx context.Context) ([]float64, error) {
			row, spent, err := server.beside(ctx, alone.round)
			if p.is.floor {
				spent = notMeasured // not all of its commands are scripts
			}
			return append(row, spent/float64(size.operations)), err
		}, func(ctx context.Context) error {
			server.close()
			return alone.close(ctx)
		}}, nil
	}
}

// aloneInJava is the same there.
func aloneInJava(size familySizes) func(ctx context.Context, a arena, recipe, key string) (runner, error) {
	return func(ctx context.Context, a arena, recipe, key string) (runner, error) {
		p, err := openJava(ctx, a.java, a.redis, a.zooKeeper, recipe, key)
		if err != nil {
			return nil, err
		}
		if _, err = p.ask(ctx, "alone", size.warm); err != nil {
			return nil, err
		}
		server, err := newCPUMeter(a.world)
		return steps{func(ctx context.Context) ([]float64, error) {
			row, spent, err := server.beside(ctx, func(ctx context.Context) ([]float64, error) {
				times, err := p.ask(ctx, "alone", size.operations)
				return summarize(times), err
			})
			if spent == 0 {
				spent = notMeasured // it was not Redis
			}
			return append(row, spent/float64(size.operations)), err
		}, func(ctx context.Context) error {
			server.close()
			return p.close(ctx)
		}}, err
	}
}

// beside does something, and returns what scripts have cost the server meanwhile, in µs.
func (c *cpuMeter) beside(ctx context.Context, do func(context.Context) ([]float64, error)) (row []float64, spent float64, err error) {
	before, err := scripts(ctx, c.redis)
	if err != nil {
		return nil, 0, err
	}
	if row, err = do(ctx); err != nil {
		return nil, 0, err
	}
	after, err := scripts(ctx, c.redis)
	return row, after.since(before).micros, err
}

// rateOf counts how often one goroutine does something in a while.
func rateOf(window time.Duration, do func() error) (float64, error) {
	const batch = 64 // between looks at the clock
	start := time.Now()
	for n := 0; ; n += batch {
		if elapsed := time.Since(start); elapsed >= window {
			return float64(n) / elapsed.Seconds(), nil
		}
		for range batch {
			if err := do(); err != nil {
				return math.NaN(), err
			}
		}
	}
}

// pair takes and gives back.
func pair(ctx context.Context, w worker, key string) error {
	h, err := w.lock(ctx, key)
	if err != nil {
		return err
	}
	return h.Unlock(ctx)
}

// until asks for something again and again until it is so.
func until(ctx context.Context, is func() (bool, error)) error {
	for {
		ok, err := is()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}
