// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"math/rand/v2"
	"time"
)

// Bounds of the pause between two subscriptions, before jitter.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 30 * time.Second
)

// A backoff yields pauses that double, from firstPause to maxPause. The zero
// value is ready.
type backoff struct {
	last time.Duration // before jitter
}

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, firstPause), maxPause)
	return jitter(b.last)
}

func (b *backoff) reset() { b.last = 0 }

// jitter returns a random duration from d/2 to d.
func jitter(d time.Duration) time.Duration {
	return d - rand.N(d/2+1)
}
