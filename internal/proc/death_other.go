// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package proc

import "syscall"

// dieWithParent does nothing: these systems have no such service for a child
// that doesn't cooperate.
func dieWithParent(*syscall.SysProcAttr) {}
