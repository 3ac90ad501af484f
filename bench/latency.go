// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strconv"
	"time"
)

// uncontended is one goroutine that locks and unlocks a key that nobody else requests.
func uncontended(size sizes) workload {
	return alone(size, workload{name: "uncontended", title: "Lock and Unlock, one goroutine, nobody else"}, func(peer string, _ int) string {
		return "bench:" + peer
	})
}

// firstUse is uncontended with a key that nobody has used before, as one per order.
func firstUse(size sizes) workload {
	return alone(size, workload{name: "first use", title: "Lock and Unlock, one goroutine, each key used once"}, func(peer string, n int) string {
		return "bench:" + peer + ":" + strconv.Itoa(n)
	})
}

// alone is a workload of one goroutine. key names the n-th key of a peer.
func alone(size sizes, is workload, key func(peer string, n int) string) workload {
	is.metrics = []metric{{Name: "p50", Unit: "µs"}, {Name: "p90", Unit: "µs"}, {Name: "p99", Unit: "µs"}}
	is.rounds = size.rounds
	is.prepare = func(ctx context.Context, w world, p peer) (runner, error) {
		c, work, err := p.openWorker(ctx, w)
		return &latency{client: c, worker: work, key: func(n int) string { return key(p.name, n) }, times: make([]float64, size.operations)}, err
	}
	return is
}

type latency struct {
	client client
	worker worker
	key    func(n int) string
	locks  int
	times  []float64
}

func (l *latency) round(ctx context.Context) ([]float64, error) {
	for i := range l.times {
		key := l.key(l.locks)
		l.locks++
		start := time.Now()
		h, err := l.worker.lock(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := h.Unlock(ctx); err != nil {
			return nil, err
		}
		l.times[i] = micros(time.Since(start))
	}
	return quantiles(l.times, 0.5, 0.9, 0.99), nil
}

func (l *latency) close(ctx context.Context) error { return l.client.close(ctx) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
