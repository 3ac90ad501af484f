// SPDX-License-Identifier: Apache-2.0

// Package backoff computes the pauses between tries, and makes them.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Jitter returns d changed at random by at most the fraction spread of d, up or down. Clients that
// start together then do not stay together.
func Jitter(d time.Duration, spread float64) time.Duration {
	return time.Duration(float64(d) * (1 - spread + 2*spread*rand.Float64()))
}

// Doubled returns first, doubled with each failure in a row, up to most. If first is larger than
// most, it returns first.
func Doubled(first time.Duration, failures int, most time.Duration) time.Duration {
	return min(first<<min(max(failures, 0), 16), max(most, first))
}

// Sleep waits for d. It reports false if ctx has ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
