// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// A guard is a process that kills the command's group if we are killed and can't do so. The kernel
// kills at most the command itself (see proc), but not the processes that the command has started.
type guard struct {
	process *exec.Cmd
	life    io.WriteCloser // a pipe that closes when we end
}

// startGuard starts a guard. The guard has a group of its own, out of reach of our terminal.
func startGuard() (*guard, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	process := exec.Command(program, guardName)
	process.Dir = "/"
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	life, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	return &guard{process, life}, nil
}

// watch sends the guard the group to kill.
func (g *guard) watch(command *os.Process) {
	fmt.Fprintln(g.life, command.Pid) // fails only if the guard was killed
}

// dismiss ends the guard without any effect.
func (g *guard) dismiss() {
	_ = g.process.Process.Kill() // it may already have been killed
	_ = g.life.Close()
	_ = g.process.Wait()
}
