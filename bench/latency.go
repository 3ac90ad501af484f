// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// uncontended is one goroutine that locks and unlocks a key that nobody else requests.
func uncontended(size sizes) workload {
	return workload{
		name: "uncontended", title: "Lock and Unlock, one goroutine, nobody else",
		metrics: []metric{{Name: "p50", Unit: "µs"}, {Name: "p90", Unit: "µs"}, {Name: "p99", Unit: "µs"}},
		rounds:  size.rounds,
		prepare: func(ctx context.Context, w world, p peer) (runner, error) {
			c, err := p.open(ctx, w)
			if err != nil {
				return nil, err
			}
			work, err := c.worker(ctx)
			return &latency{client: c, worker: work, key: "bench:" + p.name, times: make([]float64, size.operations)}, err
		},
	}
}

type latency struct {
	client client
	worker worker
	key    string
	times  []float64
}

func (l *latency) round(ctx context.Context) ([]float64, error) {
	for i := range l.times {
		start := time.Now()
		h, err := l.worker.lock(ctx, l.key)
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
