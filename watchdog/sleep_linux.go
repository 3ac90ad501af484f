// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"syscall"
	"time"
	"unsafe"
)

// The clocks of clock_gettime(2).
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// sleptBefore is how long the machine had slept when the process started. It is the largest of
// several readings, since each may be too small.
var sleptBefore = func() (largest time.Duration) {
	for range 5 {
		largest = max(largest, bootMinusMonotonic())
	}
	return largest
}()

// sleepSince returns how long the machine was suspended since the process
// started. It may return too little, never too much.
func sleepSince(time.Time) time.Duration { return bootMinusMonotonic() - sleptBefore }

// bootMinusMonotonic returns all the time for which this machine has been suspended. CLOCK_BOOTTIME
// counts it, CLOCK_MONOTONIC does not. The order of the readings matters. If the process is
// preempted between them, the result is too small, and the next call corrects it. In the other
// order, preemption would count as sleep, and as much of the next true sleep would never be
// noticed.
func bootMinusMonotonic() time.Duration {
	boot, okBoot := readClock(clockBoottime)
	mono, okMono := readClock(clockMonotonic)
	if !okBoot || !okMono {
		return 0
	}
	return boot - mono
}

// readClock asks the system. The standard library has the call's number, but no function
// for it.
func readClock(id uintptr) (time.Duration, bool) {
	var t syscall.Timespec
	_, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano()), failed == 0
}
