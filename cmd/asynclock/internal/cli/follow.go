// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// lookForReader is how often a command that prints for ever looks whether anybody reads.
const lookForReader = 500 * time.Millisecond

var errUnread = errors.New("nobody reads stdout any more")

// follow has do print to stdout for ever: until a signal ends us, or nobody reads. Then we exit as tail -f does, and say
// nothing. A reader that has left is noticed although there is nothing to print, or a pipeline would last until then.
func (a *app) follow(ctx context.Context, do func(context.Context, *connection) error) error {
	signals, stop := handleSignals()
	defer stop()
	ctx, end := context.WithCancelCause(ctx)
	looked := make(chan struct{})
	go func() { // ends with ctx; waited for below
		defer close(looked)
		a.awaitUnread(ctx)
		end(errUnread) // has no effect if ctx has ended
	}()
	defer func() {
		end(nil)
		<-looked
	}()
	_, err := interruptible(ctx, signals, "", func(ctx context.Context) (none struct{}, err error) {
		locks, err := a.connect(ctx)
		if err != nil {
			return none, err
		}
		defer locks.close()
		return none, do(ctx, locks)
	}, func(struct{}) {})
	exit := (*exitError)(nil)
	switch {
	case errors.Is(err, syscall.EPIPE), errors.Is(context.Cause(ctx), errUnread):
		return &exitError{code: exitSignal + int(syscall.SIGPIPE)}
	case errors.As(err, &exit) && exit.code > exitSignal, ctx.Err() != nil:
		return &exitError{code: exitCode(err)}
	}
	return err
}

// awaitUnread waits until nobody reads stdout any more, or ctx ends.
func (a *app) awaitUnread(ctx context.Context) {
	tick := time.NewTicker(lookForReader)
	defer tick.Stop()
	for !isUnread(a.stdout) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
