// SPDX-License-Identifier: Apache-2.0

//go:build unix

package proc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// CanPause says whether [Pause] and [Resume] work on this system.
const CanPause = true

// Prepare makes the child that cmd will start the leader of its own group. If the system can do it,
// the child also ends with this process. Call it before Start.
func Prepare(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr)
}

// Signal sends sig to the child's whole group. It is no error if the group is gone.
func Signal(child *os.Process, sig syscall.Signal) error {
	err := syscall.Kill(-child.Pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return os.NewSyscallError("kill", err)
}

// Terminate requests the child's group to end.
func Terminate(child *os.Process) error { return Signal(child, syscall.SIGTERM) }

// Kill ends the child's group.
func Kill(child *os.Process) error { return Signal(child, syscall.SIGKILL) }

// Pause stops the child's group until [Resume].
func Pause(child *os.Process) error { return Signal(child, syscall.SIGSTOP) }

// Resume continues a paused group.
func Resume(child *os.Process) error { return Signal(child, syscall.SIGCONT) }

// Alive reports whether any member of the child's group is left. It may be called for a short time
// after the child itself was waited for. The kernel gives the group's number to nobody else while a
// member lives, but the number is free once the group is empty. A member that has ended counts
// until its parent has waited for it; for an orphan, this depends on process 1.
func Alive(child *os.Process) bool {
	return syscall.Kill(-child.Pid, 0) == nil
}
