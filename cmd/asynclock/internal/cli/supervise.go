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

// pipeDelay bounds the wait for another process's end of a pipe after the command has ended. It
// matters only if our own streams are not files.
const pipeDelay = time.Second

// supervise runs cmd until it ends. It makes sure that cmd ends soon after the lease or ctx ends.
// It returns the command's exit code as an error, and nil for 0.
func (a *app) supervise(ctx context.Context, cmd *exec.Cmd, lease *asynclock.Lease, grace time.Duration, signals <-chan os.Signal) error {
	// The command ends when the thread that started it ends; see proc.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	guard, err := startGuard()
	if err != nil {
		return fmt.Errorf("start a guard for the command: %w", err)
	}
	defer guard.dismiss()
	// Since the grant, a signal may have come, or this process may have been stopped for long.
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
			code = exitNotFound // for example, the interpreter of a script
		}
		return &exitError{code: code, err: err}
	}
	guard.watch(cmd.Process)
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // cmd.ProcessState has the result
		close(ended)
	}()

	lost, stopped := lease.Done(), ctx.Done()
	var patience <-chan time.Time // set while the command has been requested to end
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

// sweep ends the processes that the command left in its group, after its patience has ended.
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

// commandResult translates a command's end into our own.
func commandResult(state *os.ProcessState) error {
	code := state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = exitSignal + int(status.Signal())
	}
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}

// notIgnored returns the signals that our starter did not make us ignore. nohup, for example, makes
// us ignore SIGHUP. Such signals stay ignored, in this process and in the command.
func notIgnored(all []os.Signal) []os.Signal {
	var some []os.Signal
	for _, s := range all {
		if !signal.Ignored(s) {
			some = append(some, s)
		}
	}
	return some
}
