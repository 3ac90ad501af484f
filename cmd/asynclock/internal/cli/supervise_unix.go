// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// forwarded are the signals that we pass on to the command.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// stops are the signals by which a terminal stops whoever it is not meant for.
var stops = []os.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

// ignoreStops keeps terminals from stopping us, since then nobody would renew the
// lease or end the command, and the command that we start until the returned
// function is called, since that would keep the key: what is ignored is inherited.
// Of SIGTTOU nothing less helps: a write that it interrupts would be tried for ever.
func ignoreStops() (restore func()) {
	signal.Ignore(stops...)
	return func() { signal.Reset(stops...) }
}

// endsUs reports whether a signal ends a wait, having no command to go to.
func endsUs(s os.Signal) bool { return s != syscall.SIGUSR1 && s != syscall.SIGUSR2 }

// forward passes a signal on to the command.
func forward(command *os.Process, s os.Signal) {
	if number, ok := s.(syscall.Signal); ok {
		_ = proc.Signal(command, number) // it may just have ended
	}
}

// giveTerminal lets the command that cmd will start have the terminal, if we
// talk to one and have it now: a process group without it can't read from it.
// What it returns takes the terminal back.
//
// In a pipeline (stdout is no terminal) the others need it as much as we do, so
// there it stays where it is.
func (a *app) giveTerminal(cmd *exec.Cmd) (takeBack func()) {
	stdin, stdinIsFile := a.stdin.(*os.File)
	stdout, stdoutIsFile := a.stdout.(*os.File)
	if !stdinIsFile || !stdoutIsFile || !term.IsTerminal(int(stdin.Fd())) || !term.IsTerminal(int(stdout.Fd())) {
		return func() {}
	}
	terminal, us := int(stdin.Fd()), unix.Getpgrp()
	if owner, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP); err != nil || owner != us {
		return func() {} // we run in the background
	}
	cmd.SysProcAttr.Foreground = true
	cmd.SysProcAttr.Ctty = terminal
	return func() {
		// This stops who does it from the background, unless it is ignored as by
		// ignoreStops. The terminal may be gone.
		_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, us)
	}
}
