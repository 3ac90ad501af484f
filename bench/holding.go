// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// A holding is the keys, seen from inside the process that holds them.
type holding struct {
	worker   worker
	key      string
	meter    *meter
	renewals *renewals // nil for other peers, whose renewals can't be observed
}

func newHolding(ctx context.Context, p peer, w world) (k *holding, err error) {
	k = &holding{key: "bench:held:" + p.name + ":", meter: new(meter)}
	w.dial = k.meter.dial
	if p.name == asynclockPeer.name {
		k.renewals = new(renewals)
		k.worker, err = k.renewals.client(w)
		return k, err
	}
	_, k.worker, err = p.openWorker(ctx, w)
	return k, err
}

// takers is how many goroutines take the keys.
const takers = 256

// take takes the keys.
func (k *holding) take(ctx context.Context, keys int) ([]held, error) {
	leases := make([]held, keys)
	errs := make([]error, takers)
	var taking sync.WaitGroup
	for t := range takers {
		taking.Go(func() {
			for i := t; i < keys && errs[t] == nil; i += takers {
				leases[i], errs[t] = k.worker.lock(ctx, k.key+strconv.Itoa(i))
			}
		})
	}
	taking.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return leases, nil
}

// size returns the heap in use and the number of goroutines.
func (k *holding) size() (bytes, goroutines float64) {
	for range 3 { // pools and finalizers release their last objects in later rounds
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc), float64(runtime.NumGoroutine())
}

// An upkeep is the work of the client in a time in which its keys were held and it had no other
// requests.
type upkeep struct {
	Spans    []span // in which renewals were under way
	Keys     int    // the number of renewed keys
	Renewals int    // commands that carried them
	Commands int    // of all kinds; each inbox also proves itself every 5 to 10 s
}

// watch observes the client for the given time. It leaves out values that can't be observed.
func (k *holding) watch(ctx context.Context, length time.Duration) (seen upkeep, err error) {
	commands := k.meter.commands.Load()
	if k.renewals != nil {
		k.renewals.forget()
	}
	select {
	case <-time.After(length):
	case <-ctx.Done():
		return seen, ctx.Err()
	}
	seen.Commands = int(k.meter.commands.Load() - commands)
	if k.renewals != nil {
		seen.Spans, seen.Keys, seen.Renewals = k.renewals.done()
	}
	return seen, nil
}

// probe locks and unlocks one more key over and over for the given time, and returns the 99th
// percentile in microseconds. If during is given, it counts only the locks that were under way
// together with a renewal.
func (k *holding) probe(ctx context.Context, length time.Duration, during *renewals) float64 {
	var times []float64
	for begin := time.Now(); time.Since(begin) < length; {
		start := time.Now()
		h, err := k.worker.lock(ctx, k.key+"probe")
		if err != nil {
			return -1
		}
		if h.Unlock(ctx) != nil {
			return -1
		}
		if during == nil || during.overlaps(start) {
			times = append(times, micros(time.Since(start)))
		}
		time.Sleep(200 * time.Microsecond)
	}
	if len(times) == 0 {
		return -1
	}
	return quantiles(times, 0.99)[0]
}
