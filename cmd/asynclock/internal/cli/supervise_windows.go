// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/exec"
)

// forwarded are the signals that must not end us while the command runs.
var forwarded = []os.Signal{os.Interrupt}

// stops is empty: no console stops a program.
var stops []os.Signal

// ignoreStops does nothing: there are no stops.
func ignoreStops() (restore func()) { return func() {} }

// endsUs reports whether a signal ends a wait, while there is no command to pass it on to.
func endsUs(os.Signal) bool { return true }

// forward does nothing: the console has already sent Ctrl-C to the command.
func forward(*os.Process, os.Signal) {}

// giveTerminal does nothing: the command shares our console.
func (a *app) giveTerminal(*exec.Cmd) (takeBack func()) { return func() {} }

// A guard does nothing: this system could kill only the command itself.
type guard struct{}

func startGuard() (guard, error) { return guard{}, nil }

func (guard) watch(*os.Process) {}

func (guard) dismiss() {}
