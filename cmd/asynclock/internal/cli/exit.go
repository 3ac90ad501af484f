// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"syscall"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/cmd/asynclock/internal/demo"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore"
)

// The exit codes. Those from 64 to 78 have the meaning in sysexits.h; 124 is that of timeout(1),
// and those from 126 are the shell's.
const (
	exitOK            = 0
	exitUnsafe        = 1
	exitWarn          = 1
	exitFail          = 2
	exitUsage         = 64
	exitForeign       = 65
	exitUnreachable   = 69
	exitOther         = 70
	exitHeld          = 75
	exitDenied        = 77
	exitLost          = 79
	exitTimedOut      = 124
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal's number
)

const exitCodesHelp = `
Exit codes:
    0  done; run exits with the command's own code, 0 or any other
    1  demo: an update made under the lock was lost, or a stale token accepted;
       doctor, why: there is a warning
    2  doctor, why: locks don't work, or the server can't be reached
   64  the command line, a key or an option is invalid
   65  the data under the key is not asynclock's, or the tables are not this
       release's; nothing was changed
   69  the server can't be reached, did not answer, or grants nothing for long
   70  any other error
   75  run and hold with --wait 0: held by another; or too many are already
       waiting; unlock: held with another token, or not confirmed;
       grace end: not proven, or the server was replaced meanwhile;
       note: nobody holds the key, or the holder has left no note
   77  the server does not give this user the necessary rights
   79  run: the lease was lost while the command ran; hold: the lease was lost
  124  run and hold: no lock within --wait; wait: --timeout has passed
  126  run: the command can't be executed
  127  run: the command was not found
 128+n signal n ended the command, or asynclock; hold exits with 0 if it had the
       key; watch and note --follow: 13 is that nobody reads stdout any more
run and hold exit with another number instead of 75 and 124, if
--conflict-exit-code gives one. The codes of the command stay as they are.
`

// An exitError ends the program with its own exit code.
type exitError struct {
	code int
	err  error // nil: no message
	held bool  // another has the key
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitCodes is in the order of precedence. An error can be several of these at once, for example if
// renewals failed because the server was unreachable.
var exitCodes = []struct {
	err  error
	code int
}{
	{asynclock.ErrLost, exitLost},
	{asynclock.ErrHeld, exitHeld},
	{store.ErrGraceUnproven, exitHeld},
	{store.ErrGraceChanged, exitHeld},
	{asynclock.ErrQueueFull, exitHeld},
	{asynclock.ErrDenied, exitDenied},
	{asynclock.ErrForeignData, exitForeign},
	{asynclock.ErrInvalidKey, exitUsage},
	{asynclock.ErrInvalidOption, exitUsage},
	{asynclock.ErrPermits, exitUsage},
	{asynclock.ErrUnreachable, exitUnreachable},
	{asynclock.ErrOutcomeUnknown, exitUnreachable},
	{context.DeadlineExceeded, exitTimedOut},
	{context.Canceled, exitSignal + int(syscall.SIGINT)},
	{demo.ErrUnsafe, exitUnsafe},
}

// exitCode returns the code for an error of a command that has begun.
func exitCode(err error) int {
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		return exit.code
	}
	if errors.As(err, new(*sqlstore.SchemaError)) {
		return exitForeign
	}
	for _, e := range exitCodes {
		if errors.Is(err, e.err) {
			return e.code
		}
	}
	return exitOther
}

// message returns the text of err for people.
func message(err error) string {
	if held := (*asynclock.HeldError)(nil); errors.As(err, &held) {
		return describeHeld(held)
	}
	if errors.As(err, new(*sqlstore.SchemaError)) {
		return err.Error() + "; 'asynclock migrate' makes and updates tables"
	}
	return err.Error()
}
