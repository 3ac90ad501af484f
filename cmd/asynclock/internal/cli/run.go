// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Variables that run sets in the command's environment.
const (
	keyVariable   = "ASYNCLOCK_KEY"
	tokenVariable = "ASYNCLOCK_TOKEN"
)

// runHelp is the text of asynclock run --help.
//
//go:embed help/run.txt
var runHelp string

type runOptions struct {
	holdOptions

	grace time.Duration
}

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:     "run KEY [flags] -- COMMAND [ARG...]",
		Aliases: []string{"lock"},
		Short:   "Run a command under a lock",
		Long:    runHelp + environmentHelp + exitCodesHelp,
		Example: `  # Nightly, from cron on every host: one of them runs it, the others exit with 75.
  asynclock run nightly --wait 0 --min-hold 1h --quiet -- /usr/local/bin/nightly

  # One deployment at a time; wait at most ten minutes for the lock.
  asynclock run deploy/prod --wait 10m -- ./deploy.sh --all

  # At most three imports at a time on all hosts.
  asynclock run imports --permits 1 --of 3 -- ./import.sh

  # Fencing: send the token with every write.
  asynclock run ledger -- sh -c 'curl -H "X-Token: $ASYNCLOCK_TOKEN" ...'`,
		Args:              keyAndCommand,
		ValidArgsFunction: a.completeKeyAndCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkGrace(cmd, &o.grace, o.ttl); err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			o.key = args[0]
			return a.run(cmd.Context(), o, args[1:])
		},
	}
	o.addTo(cmd)
	addGrace(cmd, &o.grace)
	return cmd
}

// addGrace gives a command the flag --grace.
func addGrace(cmd *cobra.Command, grace *time.Duration) {
	cmd.Flags().DurationVar(grace, "grace", 0, "after a loss, how long the command may take to end; default a tenth of --ttl")
}

// checkGrace completes the flag.
func checkGrace(cmd *cobra.Command, grace *time.Duration, ttl time.Duration) error {
	if *grace < 0 {
		return &exitError{code: exitUsage, err: errors.New("--grace is negative")}
	}
	if !cmd.Flags().Changed("grace") {
		*grace = ttl / 10
	}
	return nil
}

// run takes the lock, runs the command and unlocks.
func (a *app) run(ctx context.Context, o runOptions, command []string) error {
	path, err := lookPath(command[0])
	if err != nil {
		return err
	}
	signals, stop := handleSignals()
	defer stop()
	locks, lease, err := a.take(ctx, &o.holdOptions, command[0], signals)
	if err != nil {
		return err
	}
	defer locks.close()
	restore := ignoreStops() // until we hold nothing
	defer restore()
	endNote := a.keepNote(lease, o.note)
	cmd := a.command(path, command, lease)
	result := a.supervise(ctx, cmd, lease, o.grace, signals)

	// The command has ended, so others may get the key. A further signal must not prevent the
	// unlock.
	endNote()
	ctx = context.WithoutCancel(ctx)
	err = lease.Unlock(ctx)
	switch {
	case errors.Is(err, asynclock.ErrLost) && cmd.ProcessState == nil: // the command was never started
		return result
	case errors.Is(err, asynclock.ErrLost):
		return &exitError{code: exitLost, err: fmt.Errorf("%w (command: %s)", err, cmd.ProcessState)}
	case err != nil:
		a.complain("%v; others get the key when its TTL has passed", err)
	}
	return result
}

// handleSignals begins to handle signals. While we wait, they end the wait. Later they go to the
// command.
func handleSignals() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 16)
	signal.Notify(signals, notIgnored(forwarded)...)
	// A message that nobody reads must not end us before the command, nor change our exit code. It
	// is enough to subscribe to the signal until the end. Unlike an ignored signal, a subscription
	// is not inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return signals, func() { signal.Stop(signals) }
}

// command returns the command that is to run under the lease.
func (a *app) command(path string, command []string, lease *asynclock.Lease) *exec.Cmd {
	cmd := exec.Command(path, command[1:]...)
	cmd.Args[0] = command[0]
	cmd.Env = append(environment(), keyVariable+"="+lease.Key(),
		tokenVariable+"="+strconv.FormatInt(lease.Token(), 10))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, a.stdout, a.stderr
	return cmd
}

// environment returns ours without the store's URL, whose password is not for the command and all that it starts.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(urlVariables, func(v string) bool { return strings.EqualFold(name, v) }) // Windows knows no case
	})
}

// lookPath finds the command as a shell does, with a shell's exit codes.
func lookPath(command string) (string, error) {
	path, err := exec.LookPath(command)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", &exitError{code: exitNotFound, err: fmt.Errorf("%s: command not found", command)}
	default:
		return "", &exitError{code: exitNotExecutable, err: err}
	}
}
