// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"syscall"
)

// groupAttr gives a command a process group of its own, so that a signal
// reaches what it started: go test does not pass them on to the tests.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

func signalGroup(p *os.Process, sig syscall.Signal) error {
	return syscall.Kill(-p.Pid, sig)
}
