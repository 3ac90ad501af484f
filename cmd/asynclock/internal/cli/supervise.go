// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/proc"
)

// pipeDelay bounds the wait for somebody else's end of a pipe once the command
// has ended. It matters only if our own streams are no files.
const pipeDelay = time.Second

// supervise runs cmd until it ends, and sees to it that it ends soon after the
// lease or ctx does. It returns the command's exit code as an error, and nil
// for 0.
func (a *app) supervise(ctx context.Context, cmd *exec.Cmd, lease *asynclock.Lease, grace time.Duration, signals <-chan os.Signal) error {
	// The command ends with the thread that started it; see proc.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	guard, err := startGuard()
	if err != nil {
		return fmt.Errorf("start a guard for the command: %w", err)
	}
	defer guard.dismiss()
	// Between the grant and now we may have been told to end, or stopped for long.
	if err := interrupted(signals, lease.Key()); err != nil {
		return err
	}
	if err := lease.Err(); err != nil {
		return err
	}
	proc.Prepare(cmd)
	cmd.WaitDelay = pipeDelay
	takeBack := a.giveTerminal(cmd)
	defer takeBack()
	if err := cmd.Start(); err != nil {
		code := exitNotExecutable
		if errors.Is(err, os.ErrNotExist) {
			code = exitNotFound // the interpreter of a script, say
		}
		return &exitError{code, err}
	}
	guard.watch(cmd.Process)
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // cmd.ProcessState has it
		close(ended)
	}()

	lost, stopped := lease.Done(), ctx.Done()
	var patience <-chan time.Time // while the command has been told to end
	end := func(why string) {
		lost, stopped = nil, nil
		_ = proc.Terminate(cmd.Process) // it may just have ended
		patience = time.After(grace)
		a.complain("%s; ending the command", why)
	}
	for {
		select {
		case <-ended:
			if patience != nil {
				sweep(cmd.Process, patience)
			}
			return commandResult(cmd.ProcessState)
		case s := <-signals:
			forward(cmd.Process, s)
		case <-lost:
			end(fmt.Sprintf("%q: %s", lease.Key(), strings.TrimPrefix(lease.Err().Error(), "asynclock: ")))
		case <-stopped:
			end(context.Cause(ctx).Error())
		case <-patience:
			patience = nil
			_ = proc.Kill(cmd.Process) // it may just have ended
		}
	}
}

// sweep ends what the command left in its group, when its patience is over.
func sweep(command *os.Process, patience <-chan time.Time) {
	for proc.Alive(command) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-patience:
			_ = proc.Kill(command)
			return
		}
	}
}

// commandResult turns a command's end into our own.
func commandResult(state *os.ProcessState) error {
	code := state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = exitSignal + int(status.Signal())
	}
	if code == 0 {
		return nil
	}
	return &exitError{code, nil}
}

// notIgnored returns the signals that whoever started us did not tell us to
// ignore, as nohup does with SIGHUP: those stay ignored, here and in the
// command.
func notIgnored(all []os.Signal) []os.Signal {
	var some []os.Signal
	for _, s := range all {
		if !signal.Ignored(s) {
			some = append(some, s)
		}
	}
	return some
}
