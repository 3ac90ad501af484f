// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

var sleptBefore = bootMinusMonotonic()

// sleepSince returns how long the machine was suspended since the process
// started.
func sleepSince(time.Time) time.Duration { return bootMinusMonotonic() - sleptBefore }

// bootMinusMonotonic is all the time this machine has been suspended:
// CLOCK_BOOTTIME counts it, CLOCK_MONOTONIC does not.
func bootMinusMonotonic() time.Duration {
	var mono, boot unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano())
}
