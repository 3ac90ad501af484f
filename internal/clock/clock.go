// SPDX-License-Identifier: Apache-2.0

// Package clock reads a clock that never goes back and never stands still, not
// even while the machine is suspended.
//
// Go's own monotonic clock stops during suspend on Linux and macOS, so a laptop
// or virtual machine that slept for an hour would believe in its leases as if
// no time had passed. An [Instant] adds the time slept. It works inside
// testing/synctest bubbles, where the Go part is virtual.
package clock

import (
	"sync/atomic"
	"time"
)

// An Instant is a reading: the time since this process started, sleep
// included. Only differences mean anything.
type Instant time.Duration

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from other to i.
func (i Instant) Sub(other Instant) time.Duration { return time.Duration(i - other) }

var (
	started = time.Now()
	slept   atomic.Int64 // the most sleep seen so far, in nanoseconds
)

// Now reads the clock, with the sleep known at the last [Refresh]. It may be
// behind after a suspend, never ahead: a deadline counted from it is early, and
// early is safe.
func Now() Instant {
	return Instant(time.Since(started) + time.Duration(slept.Load()))
}

// Refresh asks the system how long it has slept and reads the clock. A deadline
// is compared with this.
func Refresh() Instant {
	now := int64(sleepSince(started))
	for {
		known := slept.Load()
		// The two clocks behind sleepSince are read one after the other; what
		// is less than this is the time between the readings.
		if now < known+int64(time.Millisecond) || slept.CompareAndSwap(known, now) {
			return Now()
		}
	}
}
