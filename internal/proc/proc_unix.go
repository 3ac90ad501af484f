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

// Prepare makes the child that cmd will start the leader of its own group and,
// where the system can, end with this process. Call it before Start.
func Prepare(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr)
}

// Signal sends sig to the child's whole group. A group that is gone is no error.
func Signal(child *os.Process, sig syscall.Signal) error {
	err := syscall.Kill(-child.Pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return os.NewSyscallError("kill", err)
}

// Terminate asks the child's group to end.
func Terminate(child *os.Process) error { return Signal(child, syscall.SIGTERM) }

// Kill ends the child's group.
func Kill(child *os.Process) error { return Signal(child, syscall.SIGKILL) }

// Pause stops the child's group from running, until [Resume].
func Pause(child *os.Process) error { return Signal(child, syscall.SIGSTOP) }

// Resume lets a paused group run on.
func Resume(child *os.Process) error { return Signal(child, syscall.SIGCONT) }

// Alive reports whether anything is left of the child's group. It may be asked
// after the child itself was waited for, though not for long: the kernel gives
// the group's number to nobody else while a member lives, but once the group is
// empty the number is free again. A member that has ended counts until its parent
// has taken note, which for an orphan is a matter of process 1.
func Alive(child *os.Process) bool {
	return syscall.Kill(-child.Pid, 0) == nil
}
