// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// drain is many waiters that wait for one key at once and hold it for no time.
func drain(size sizes) workload {
	const clients = 5
	each := size.drained / clients
	return workload{
		name:     "drain",
		title:    fmt.Sprintf("%d waiters of %d clients, from the first unlock to the last", clients*each, clients),
		metrics:  []metric{{Name: "time", Unit: "ms"}, {Name: "stuck", Unit: "waiters"}},
		rounds:   max(size.rounds/4, 1),
		leaveOut: waits,
		prepare: func(ctx context.Context, w world, p peer) (runner, error) {
			holder, err := newCrowd(ctx, w, p, 1, 1, 0)
			if err != nil {
				return nil, err
			}
			waiters, err := newCrowd(ctx, w, p, clients, each, 0)
			return &drains{holder: holder, waiters: waiters, key: "bench:drain:" + p.name}, err
		},
	}
}

type drains struct {
	holder, waiters *crowd
	key             string
}

// How long the waiters may take to come, and how long they may take to be served.
const (
	gathering = 300 * time.Millisecond
	draining  = 10 * time.Second
)

func (d *drains) round(ctx context.Context) ([]float64, error) {
	first, err := d.holder.members[0].worker.lock(ctx, d.key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, draining)
	defer cancel()
	var served atomic.Int64
	var waiting sync.WaitGroup
	for _, m := range d.waiters.members {
		waiting.Go(func() {
			h, err := m.worker.lock(ctx, d.key)
			if err == nil && h.Unlock(context.WithoutCancel(ctx)) == nil {
				served.Add(1)
			}
		})
	}
	time.Sleep(gathering)
	start := time.Now()
	if err := first.Unlock(ctx); err != nil {
		return nil, err
	}
	waiting.Wait()
	took := millis(time.Since(start))
	stuck := len(d.waiters.members) - int(served.Load())
	if stuck > 0 {
		took = math.NaN() // it never ended
	}
	return []float64{took, float64(stuck)}, nil
}

func (d *drains) close(ctx context.Context) error {
	err := d.holder.close(ctx)
	if err2 := d.waiters.close(ctx); err == nil {
		err = err2
	}
	return err
}
