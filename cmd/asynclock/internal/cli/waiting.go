// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

const (
	// silence is how long run waits for the lock before it says why.
	silence = time.Second
	// lookAgain is how often run then looks whether it waits for something else.
	lookAgain = 10 * time.Second
	// lookPatience is how long an answer may take. A server that takes longer does not answer.
	lookPatience = 2 * time.Second
)

// A waitReport says why we wait for a key: once, and again when the reason has changed.
type waitReport struct {
	key     string
	inspect func(context.Context, string) (asynclock.Info, error)
	say     func(format string, args ...any)
}

// A waitReason is what a wait is for. Equal reasons are said once.
type waitReason struct {
	kind  waitKind
	token int64 // the holder's
}

type waitKind int

const (
	unknown waitKind = iota // nothing is said
	heldByAnother
	grantsNothing
	noAnswer
)

// run reports until ctx ends.
func (w *waitReport) run(ctx context.Context) {
	var said waitReason
	next := time.NewTimer(silence)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		reason, text := w.look(ctx)
		if ctx.Err() != nil {
			return // the wait is over
		}
		if reason.kind != unknown && reason != said {
			w.say("waiting for %q: %s", w.key, text)
			said = reason
		}
		next.Reset(lookAgain)
	}
}

// look finds out what the wait is for. While we queue for a key that nobody holds, the server grants
// nothing: usually it has started or been promoted lately, and may have forgotten a holder.
func (w *waitReport) look(ctx context.Context) (waitReason, string) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	info, err := w.inspect(ctx, w.key)
	switch {
	case errors.Is(err, asynclock.ErrUnreachable), errors.Is(err, asynclock.ErrOutcomeUnknown), errors.Is(err, context.DeadlineExceeded):
		return waitReason{kind: noAnswer}, "the server can't be reached, or does not answer"
	case err != nil: // the wait itself will say it
		return waitReason{}, ""
	case info.Held:
		return waitReason{heldByAnother, info.Token}, fmt.Sprintf("held by %s (token %d)", printable(info.Holder), info.Token)
	case info.Waiters > 0:
		return waitReason{kind: grantsNothing}, "nobody holds it, but the server grants nothing yet, as after its start or its promotion"
	}
	return waitReason{}, ""
}

// reportWait says on stderr why we wait for the key, until the returned function is called.
func (a *app) reportWait(ctx context.Context, locks *connection, key string) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	w := waitReport{key, locks.Inspect, a.complain}
	ended := make(chan struct{})
	go func() { // ends with ctx; end waits for it
		defer close(ended)
		w.run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}
