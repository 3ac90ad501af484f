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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

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
	key     string
	holder  string
	ttl     time.Duration
	maxHold time.Duration
	minHold time.Duration
	wait    waitLimit
	quiet   bool
	grace   time.Duration
	part    part
}

func (a *app) runCommand() *cobra.Command {
	o := runOptions{wait: forever}
	cmd := &cobra.Command{
		Use:        "run KEY [flags] -- COMMAND [ARG...]",
		SuggestFor: []string{"lock"},
		Short:      "Run a command under a lock",
		Long:       runHelp + environmentHelp + exitCodesHelp,
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
			if o.grace < 0 {
				return &exitError{exitUsage, errors.New("--grace is negative")}
			}
			if err := o.part.check(&o); err != nil {
				return &exitError{exitUsage, err}
			}
			if !cmd.Flags().Changed("grace") {
				o.grace = o.ttl / 10
			}
			o.key = args[0]
			return a.run(cmd.Context(), o, args[1:])
		},
	}
	flags := cmd.Flags()
	flags.Var(&o.wait, "wait", "how long to wait for the lock; 0: not while another has it")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "don't say that another has the lock, nor what is waited for")
	flags.DurationVar(&o.ttl, "ttl", asynclock.DefaultTTL,
		"how long the server keeps the lock if asynclock dies, and how long a server outage it survives")
	flags.DurationVar(&o.grace, "grace", 0,
		"after a loss, how long the command may take to end; default a tenth of --ttl")
	flags.DurationVar(&o.maxHold, "max-hold", 0, "end the command, as after a loss, when it has run for this long")
	flags.DurationVar(&o.minHold, "min-hold", 0,
		"hold the key back from everyone for this long after the start, even if the command ends sooner")
	o.part.addTo(cmd)
	flags.StringVar(&o.holder, "holder", "", "description of the holder that others see; default command, host and pid")
	return cmd
}

// run takes the lock, runs the command and unlocks.
func (a *app) run(ctx context.Context, o runOptions, command []string) error {
	path, err := lookPath(command[0])
	if err != nil {
		return err
	}
	signals, stop := handleSignals()
	defer stop()
	locks, err := interruptible(ctx, signals, o.key, func(ctx context.Context) (*connection, error) {
		return a.connect(ctx, o.settings(command[0])...)
	}, (*connection).close)
	if err != nil {
		return err
	}
	defer locks.close()
	lease, err := interruptible(ctx, signals, o.key, func(ctx context.Context) (*asynclock.Lease, error) {
		return a.lock(ctx, locks, o)
	}, func(lease *asynclock.Lease) { _ = lease.Unlock(context.WithoutCancel(ctx)) })
	if err != nil {
		return err
	}
	restore := ignoreStops() // until we hold nothing
	defer restore()
	cmd := a.command(path, command, lease)
	result := a.supervise(ctx, cmd, lease, o.grace, signals)

	// The command has ended, so others may get the key. A further signal must not prevent the
	// unlock.
	ctx = context.WithoutCancel(ctx)
	err = lease.Unlock(ctx)
	switch {
	case errors.Is(err, asynclock.ErrLost) && cmd.ProcessState == nil: // the command was never started
		return result
	case errors.Is(err, asynclock.ErrLost):
		return &exitError{exitLost, fmt.Errorf("%w (command: %s)", err, cmd.ProcessState)}
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

// settings returns the lock options of the flags.
func (o runOptions) settings(command string) []asynclock.ClientOption {
	holder := o.holder
	if holder == "" {
		holder = describeHolder(command)
	}
	options := []asynclock.ClientOption{
		asynclock.WithTTL(o.ttl), asynclock.WithMinHold(o.minHold), asynclock.WithDescription(holder),
	}
	if o.maxHold != 0 {
		options = append(options, asynclock.WithMaxHold(o.maxHold))
	}
	return options
}

// describeHolder returns a holder's description of the user and the command, with valid characters
// only.
func describeHolder(command string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, fmt.Sprintf("pid %d@%s %s", os.Getpid(), host, filepath.Base(command)))
	if len(text) > asynclock.MaxDescriptionLen {
		text = strings.ToValidUTF8(text[:asynclock.MaxDescriptionLen], "")
	}
	return text
}

// lock waits for the key as long as the options allow.
func (a *app) lock(ctx context.Context, locks *connection, o runOptions) (*asynclock.Lease, error) {
	take, try, err := o.part.calls(locks, o.key)
	if err != nil {
		return nil, err
	}
	say := a.complain
	if o.quiet {
		say = func(string, ...any) {}
	}
	if o.wait == 0 {
		lease, err := tryAfterGrace(ctx, try, o.key, say)
		if o.isSilent(err) {
			err = &exitError{exitHeld, nil}
		}
		return lease, err
	}
	wait, leaveQueue := o.wait.context(ctx)
	defer leaveQueue()
	endReport := reportWait(wait, locks, o.key, say)
	lease, err := take(wait, o.key)
	endReport()
	// A wait that ended is that and nothing else, whatever stood in its way.
	switch {
	case errors.Is(err, context.DeadlineExceeded) && wait.Err() != nil && o.isSilent(err):
		err = &exitError{exitTimedOut, nil}
	case errors.Is(err, context.DeadlineExceeded) && wait.Err() != nil:
		err = &exitError{exitTimedOut, fmt.Errorf("no lock on %q within %v%s", o.key, time.Duration(o.wait), obstacle(err))}
	case errors.Is(err, context.Canceled):
		err = context.Canceled
	}
	return lease, err
}

// isSilent reports whether the user needs no text of err, because another has the lock.
func (o *runOptions) isSilent(err error) bool {
	return o.quiet && errors.As(err, new(*asynclock.HeldError))
}

// obstacle returns what a wait that ended waited for, as the end of a sentence.
func obstacle(err error) string {
	held, grace := (*asynclock.HeldError)(nil), (*asynclock.GraceError)(nil)
	switch {
	case errors.As(err, &held):
		return ": " + describeHeld(held)
	case errors.As(err, &grace):
		return ": " + grace.Error()
	case errors.Is(err, asynclock.ErrUnreachable):
		return ": the store can't be reached"
	}
	return ""
}

// lookPath finds the command as a shell does, with a shell's exit codes.
func lookPath(command string) (string, error) {
	path, err := exec.LookPath(command)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", &exitError{exitNotFound, fmt.Errorf("%s: command not found", command)}
	default:
		return "", &exitError{exitNotExecutable, err}
	}
}
