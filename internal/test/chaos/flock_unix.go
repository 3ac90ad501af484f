// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// lockFile waits for the system's lock on a file, which ends with the process at
// the latest.
func lockFile(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("flock", err)
		}
	}
}
