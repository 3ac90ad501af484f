// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// readTogether is all readers that waited for a writer.
func readTogether(size familySizes) (c comparison) {
	c.workload = workload{
		name: "read together", title: fmt.Sprintf("From a writer's Unlock until all of %d clients read that waited for it", size.readers),
		metrics: []metric{{Name: "p50", Unit: "ms"}, {Name: "longest", Unit: "ms"}},
	}
	c.contestants = []contestant{
		ours(asynclockPeer.name, shared),
		inRedisson(redissonName, "read", redissonRead), inCurator("read", curatorRead),
	}
	c.targets = []target{{limit: 5}}
	c.inGo = func(ctx context.Context, a arena, p peer) (runner, error) {
		return newReadingClients(ctx, a, p, c.key(p.name), size)
	}
	c.inJava = func(ctx context.Context, a arena, recipe, key string) (runner, error) {
		p, err := openJava(ctx, a.java, a.redis, a.zooKeeper, recipe, key)
		if err != nil {
			return nil, err
		}
		const settle = 200 // ms, until all of them wait
		_, err = p.ask(ctx, "readers", size.readers, max(size.warm/size.readers, 1), settle)
		return steps{func(ctx context.Context) ([]float64, error) {
			times, err := p.ask(ctx, "readers", size.readers, together, settle)
			return inMillis(times), err
		}, p.close}, err
	}
	return c
}

// together is how often they wait in a round.
const together = 5

// inMillis returns the median and the maximum of microseconds.
func inMillis(times []float64) []float64 {
	q := quantiles(times, 0.5, 1)
	return []float64{q[0] / 1000, q[1] / 1000}
}

type readingClients struct {
	clients []client
	workers []worker
	writer  *asynclockClient
	key     string
}

func newReadingClients(ctx context.Context, a arena, p peer, key string, size familySizes) (runner, error) {
	clients, err := openClients(ctx, p, a.world, size.readers)
	if err != nil {
		return nil, err
	}
	r := &readingClients{clients: clients, key: key}
	for _, c := range clients {
		w, err := c.worker(ctx)
		if err != nil {
			return nil, err
		}
		r.workers = append(r.workers, w)
	}
	r.writer, err = openAsynclock(a.world)
	return r, err
}

func (r *readingClients) round(ctx context.Context) ([]float64, error) {
	var times []float64
	for range together {
		passed, err := r.pass(ctx)
		if err != nil {
			return nil, err
		}
		times = append(times, micros(passed))
	}
	return inMillis(times), nil
}

// pass has all of them wait, and tells how long after the writer's end the last of them reads. They
// stay until then.
func (r *readingClients) pass(ctx context.Context) (time.Duration, error) {
	writer, err := r.writer.locks.Lock(ctx, r.key)
	if err != nil {
		return 0, err
	}
	errs := make([]error, len(r.workers))
	var reading, leaving sync.WaitGroup
	reading.Add(len(r.workers))
	for i, w := range r.workers {
		leaving.Go(func() {
			h, err := w.lock(ctx, r.key)
			reading.Done()
			if err == nil {
				reading.Wait()
				err = h.Unlock(ctx)
			}
			errs[i] = err
		})
	}
	err = until(ctx, func() (bool, error) {
		info, err := r.writer.locks.Inspect(ctx, r.key)
		return info.Waiters == len(r.workers), err
	})
	time.Sleep(rest)
	start := time.Now()
	err = errors.Join(err, writer.Unlock(ctx))
	reading.Wait()
	passed := time.Since(start)
	leaving.Wait()
	return passed, errors.Join(append(errs, err)...)
}

func (r *readingClients) close(ctx context.Context) error {
	return errors.Join(closeClients(ctx, r.clients), r.writer.close(ctx))
}
