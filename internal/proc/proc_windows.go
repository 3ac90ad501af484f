// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"os"
	"os/exec"
)

// CanPause says whether [Pause] and [Resume] work on this system.
const CanPause = false

// Prepare does nothing on this system.
func Prepare(*exec.Cmd) {}

// Terminate kills the child, because this system can't request a child to end.
func Terminate(child *os.Process) error { return Kill(child) }

// Kill ends the child. It is no error if the child is gone.
func Kill(child *os.Process) error {
	if err := child.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Pause fails on this system.
func Pause(*os.Process) error { return errors.ErrUnsupported }

// Resume fails on this system.
func Resume(*os.Process) error { return errors.ErrUnsupported }

// Alive reports false: there is no group, and the child itself was waited for.
func Alive(*os.Process) bool { return false }
