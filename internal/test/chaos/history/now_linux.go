// SPDX-License-Identifier: Apache-2.0

package history

import "golang.org/x/sys/unix"

// Now reads the clock that all processes of this machine share.
func Now() Time {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // since Linux 2.6.39 it is there
	}
	return Time(now.Nano())
}
