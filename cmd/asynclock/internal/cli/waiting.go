// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/plain"
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
	told    func(context.Context) error // what the wait itself has been told
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

// look finds out what the wait is for. If we queue for a key that nobody holds, either the server
// grants nothing yet, or the key is about to be ours. The wait has been told which.
func (w *waitReport) look(ctx context.Context) (waitReason, string) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	info, err := w.inspect(ctx, w.key)
	switch {
	case isOutage(err):
		return waitReason{kind: noAnswer}, "the server can't be reached, or does not answer"
	case err != nil: // the wait itself will say it
		return waitReason{}, ""
	case info.Held:
		return waitReason{heldByAnother, info.Token}, fmt.Sprintf("held by %s (token %d)", plain.Text(info.Holder), info.Token)
	}
	var grace *asynclock.GraceError
	if info.Waiters > 0 && errors.As(w.told(ctx), &grace) {
		return waitReason{kind: grantsNothing}, "nobody holds it, but " + describeGrace(grace)
	}
	return waitReason{}, ""
}

func describeGrace(grace *asynclock.GraceError) string {
	return fmt.Sprintf("the server was started or promoted lately, and grants nothing for %v yet", grace.Remaining.Round(time.Second))
}

// mostGrace bounds how long tryAfterGrace waits.
const mostGrace = 10 * time.Minute

// tryAfterGrace takes the key unless another has it. While the server grants nothing yet, nobody can know that. If all
// hosts gave up then, a nightly job would run on none of them.
func tryAfterGrace(ctx context.Context, try taking, key string, say func(string, ...any)) (*asynclock.Lease, error) {
	for begin, said := time.Now(), false; ; said = true {
		lease, err := try(ctx, key)
		var grace *asynclock.GraceError
		if !errors.As(err, &grace) || time.Since(begin)+grace.Remaining > mostGrace {
			return lease, err
		}
		if !said {
			say("waiting for %q: %s", key, describeGrace(grace))
		}
		select {
		case <-time.After(max(grace.Remaining, lookPatience/10)): // it may have ended while the answer came
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// told returns what this client's wait for the key has been told. A TryLock beside it is refused with
// that, without a request to the server. If the wait has just ended, the TryLock may take the key,
// and gives it back.
func (c *connection) told(ctx context.Context, key string) error {
	lease, err := c.TryLock(ctx, key, asynclock.WithMinHold(0))
	if err == nil {
		_ = lease.Unlock(ctx)
	}
	return err
}

// reportWait says why we wait for the key, until the returned function is called.
func reportWait(ctx context.Context, locks *connection, key string, say func(string, ...any)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	told := func(ctx context.Context) error { return locks.told(ctx, key) }
	w := waitReport{key, locks.Inspect, told, say}
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
