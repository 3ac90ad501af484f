// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// retaken is one goroutine that takes the same key again and again, which nobody else requests. It
// measures the gain for a client that retains the key.
func retaken(size sizes) workload {
	return workload{
		name: "retaken", title: "Taking a key again that nobody else wants, one goroutine",
		metrics: []metric{{"rate", "locks/s", true}},
		rounds:  size.rounds,
		base:    "asynclock",
		peers: []peer{
			asynclockPeer,
			{
				name: "asynclock, retained", setting: "redisstore.Open and asynclock.New with WithRetention(time.Minute)",
				open: func(_ context.Context, w world) (client, error) {
					return openAsynclock(w, asynclock.WithRetention(time.Minute))
				},
			},
		},
		prepare: func(ctx context.Context, w world, p peer) (runner, error) {
			c, work, err := p.openWorker(ctx, w)
			return &retaking{c, work, "bench:retaken:" + p.name, size.window}, err
		},
	}
}

type retaking struct {
	client client
	worker worker
	key    string
	window time.Duration
}

func (r *retaking) round(ctx context.Context) ([]float64, error) {
	start, taken := time.Now(), 0
	for time.Since(start) < r.window {
		h, err := r.worker.lock(ctx, r.key)
		if err != nil {
			return nil, err
		}
		if err := h.Unlock(ctx); err != nil {
			return nil, err
		}
		taken++
	}
	return []float64{float64(taken) / time.Since(start).Seconds()}, nil
}

func (r *retaking) close(ctx context.Context) error { return r.client.close(ctx) }
