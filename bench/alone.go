// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"
)

// A naming returns how the keys of goroutines are named, by their numbers.
type naming func(s *stage) func(goroutine int) string

// sameKey is a key of its own for each goroutine.
func sameKey(s *stage) func(int) string {
	return func(i int) string { return s.key + ":" + strconv.Itoa(i) }
}

// freshKey is keys that nobody has used before, as one per order.
func freshKey(s *stage) func(int) string {
	var used atomic.Int64
	return func(int) string { return s.key + ":once:" + strconv.FormatInt(used.Add(1), 10) }
}

// alone is one goroutine that locks and unlocks a key that nobody else requests.
func alone(size sizes, keys naming) prepare {
	return func(_ context.Context, s *stage) round {
		lock, key := s.client().worker(), keys(s)
		return func(ctx context.Context) []float64 {
			return summarize(timed(size.operations, func(int) { lock.pair(ctx, key(0)) }))
		}
	}
}

// aloneInJava is the same there.
func aloneInJava(size sizes) prepare {
	return func(ctx context.Context, s *stage) round {
		p := s.javaPeer(ctx)
		p.ask(ctx, "alone", size.warm)
		return func(ctx context.Context) []float64 { return summarize(p.ask(ctx, "alone", size.operations)) }
	}
}

// serverTime adds a metric: what scripts cost the server meanwhile, in µs an operation.
func serverTime(size sizes, of prepare) prepare {
	return func(ctx context.Context, s *stage) round {
		redis, one := s.meterless(), of(ctx, s)
		return func(ctx context.Context) []float64 {
			before := scriptsSince(ctx, redis, scriptTime{})
			values := one(ctx)
			spent := scriptsSince(ctx, redis, before).micros / float64(size.operations)
			if spent == 0 || s.peer.is.floor { // it was not Redis, or not all of its commands are scripts
				spent = notMeasured
			}
			return append(values, spent)
		}
	}
}

// rateOfOne is one goroutine that locks and unlocks a key over and over.
func rateOfOne(size sizes) prepare {
	return func(_ context.Context, s *stage) round {
		lock := s.client().worker()
		return func(ctx context.Context) []float64 {
			return rate(size.window, 1, func() { lock.pair(ctx, s.key) })
		}
	}
}

// rate returns how often goroutines do something in a second, over and over for a while.
func rate(window time.Duration, goroutines int, do func()) []float64 {
	var done atomic.Int64
	var over atomic.Bool
	start := time.Now()
	wait := beside(func() {
		together(goroutines, func(int) {
			own := int64(0)
			for ; !over.Load(); own++ {
				do()
			}
			done.Add(own)
		})
	})
	time.Sleep(window)
	over.Store(true)
	wait()
	return []float64{float64(done.Load()) / time.Since(start).Seconds()}
}

// inMillis returns the median and the maximum of microseconds.
func inMillis(times []float64) []float64 {
	q := quantiles(times, 0.5, 1)
	return []float64{q[0] / 1000, q[1] / 1000}
}
