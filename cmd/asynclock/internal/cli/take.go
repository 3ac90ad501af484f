// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// take connects and takes the key, unless a signal ends us first. The command is part of the default description.
func (a *app) take(ctx context.Context, o *holdOptions, command string, signals <-chan os.Signal) (*connection, *asynclock.Lease, error) {
	locks, err := interruptible(ctx, signals, o.key, func(ctx context.Context) (*connection, error) {
		return a.connect(ctx, o.settings(command)...)
	}, (*connection).close)
	if err != nil {
		return nil, nil, err
	}
	lease, err := interruptible(ctx, signals, o.key, func(ctx context.Context) (*asynclock.Lease, error) {
		return a.lock(ctx, locks, o)
	}, func(lease *asynclock.Lease) { _ = lease.Unlock(context.WithoutCancel(ctx)) })
	if err != nil {
		locks.close()
		return nil, nil, o.conflict.replace(err)
	}
	return locks, lease, nil
}

// lock waits for the key as long as the options allow.
func (a *app) lock(ctx context.Context, locks *connection, o *holdOptions) (*asynclock.Lease, error) {
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
			err = &exitError{code: exitHeld, held: true}
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
		err = &exitError{code: exitTimedOut, held: true}
	case errors.Is(err, context.DeadlineExceeded) && wait.Err() != nil:
		err = &exitError{exitTimedOut, fmt.Errorf("no lock on %q within %v%s", o.key, time.Duration(o.wait), obstacle(err)), errors.Is(err, asynclock.ErrHeld)}
	case errors.Is(err, context.Canceled):
		err = context.Canceled
	}
	return lease, err
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
