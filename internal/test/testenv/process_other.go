// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"os"
	"syscall"
)

// Only Linux can tie a child's life to ours. Elsewhere children share our
// process group, which a terminal interrupts as a whole.

func groupAttr() *syscall.SysProcAttr { return nil }

func signalGroup(p *os.Process, sig syscall.Signal) error { return p.Signal(sig) }
