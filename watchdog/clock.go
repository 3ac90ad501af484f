// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"sync/atomic"
	"time"
)

// An Instant is a reading of a clock that never goes back, and that continues while the machine is
// suspended. Only differences have a meaning. The zero Instant is before every reading.
//
// Go's own monotonic clock stops during suspend on Linux and macOS. A laptop that slept for an hour
// would believe in its leases as if no time had passed. An Instant adds the time slept, as the
// system counts it. It works inside testing/synctest bubbles, where the Go part is virtual.
//
// A hypervisor can stop a virtual machine without the system in it knowing: for a live migration, or
// to take or restore a snapshot. All clocks of that system may stand still meanwhile, and then this
// clock stands still, too.
type Instant time.Duration

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from other to i.
func (i Instant) Sub(other Instant) time.Duration { return time.Duration(i - other) }

// zero keeps readings positive, also in bubbles. Time in a bubble begins in the year 2000, long
// before the process was started.
const zero = Instant(100 * 365 * 24 * time.Hour)

var (
	started = time.Now()
	slept   atomic.Int64 // the most sleep seen so far, in nanoseconds
	asked   atomic.Int64 // when, by Go's clock, the system was last asked
)

// Now reads the clock, with the sleep known at the last [Refresh]. After a suspend it may be
// behind, but never ahead. A deadline counted from it is then early, which is safe.
func Now() Instant {
	return zero + Instant(time.Since(started)) + Instant(slept.Load())
}

// Refresh asks the system how long it has slept, and reads the clock. Use it to compare the time
// with a deadline.
//
// Refresh asks the system at most once in each tenth of a millisecond of running time. No suspend
// is missed: programs are frozen before the devices and thawed after them, so no program runs
// within that time before and after a suspend.
func Refresh() Instant { return refresh(sleepSince) }

func refresh(sleepSince func(time.Time) time.Duration) Instant {
	now := int64(time.Since(started))
	if since := now - asked.Load(); since > int64(time.Millisecond/10) || since < 0 {
		learn(int64(sleepSince(started)))
		asked.Store(now) // not before, or others would miss the new reading
	}
	return Now()
}

// learn records a reading of the time slept. A reading may be too small, so the largest counts.
func learn(reading int64) {
	for {
		known := slept.Load()
		if reading <= known || slept.CompareAndSwap(known, reading) {
			return
		}
	}
}
