// SPDX-License-Identifier: Apache-2.0

package proc

import "syscall"

func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
