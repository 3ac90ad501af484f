// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package proc

import "syscall"

// dieWithParent does nothing: these systems can't do this for a child that does not cooperate.
func dieWithParent(*syscall.SysProcAttr) {}
