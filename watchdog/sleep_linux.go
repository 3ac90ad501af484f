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

// sleptBefore is how long the machine had slept when the process started: the
// largest of some readings, since any may be too small.
var sleptBefore = func() (largest time.Duration) {
	for range 5 {
		largest = max(largest, bootMinusMonotonic())
	}
	return largest
}()

// sleepSince returns how long the machine was suspended since the process
// started. It may return too little, never too much.
func sleepSince(time.Time) time.Duration { return bootMinusMonotonic() - sleptBefore }

// bootMinusMonotonic is all the time this machine has been suspended:
// CLOCK_BOOTTIME counts it, CLOCK_MONOTONIC does not. The order of the readings
// matters: a process that is preempted between them finds less sleep than there
// was, and finds the rest the next time. The other way round it would take
// preemption for sleep, and never notice as much of the next true one.
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
