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

// stops are the signals by which a terminal stops processes.
var stops = []os.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

// ignoreStops keeps terminals from stopping us. A stopped process could neither renew the lease nor
// end the command. Until the returned function is called, a command that we start cannot be stopped
// either, because ignored signals are inherited; a stopped command would keep the key. SIGTTOU must
// be ignored and not only handled: a write that it interrupts would be tried for ever.
func ignoreStops() (restore func()) {
	signal.Ignore(stops...)
	return func() { signal.Reset(stops...) }
}

// endsUs reports whether a signal ends a wait, while there is no command to pass it on to.
func endsUs(s os.Signal) bool { return s != syscall.SIGUSR1 && s != syscall.SIGUSR2 }

// forward passes a signal on to the command.
func forward(command *os.Process, s os.Signal) {
	if number, ok := s.(syscall.Signal); ok {
		_ = proc.Signal(command, number) // it may just have ended
	}
}

// giveTerminal gives the terminal to the command that cmd will start, if we have a terminal and are
// in its foreground. A process group in the background can't read from the terminal. The returned
// function takes the terminal back.
//
// In a pipeline (stdout is no terminal), the other programs need the terminal as much as we do, so
// it stays where it is.
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
		// From the background, this call stops its caller unless the signal is ignored, as by
		// ignoreStops. The terminal may be gone.
		_ = unix.IoctlSetPointerInt(terminal, unix.TIOCSPGRP, us)
	}
}
