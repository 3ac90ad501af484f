// SPDX-License-Identifier: Apache-2.0

package elect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/internal/failure"
)

// ErrResign is what a function of [Run] returns to leave the election for good. Run gives the leadership on
// and returns nil.
var ErrResign = errors.New("elect: resign")

// Run campaigns for the leadership and calls lead under each term, again and again. The context of lead
// ends with ctx, or when the term ends. The leadership is given on when lead has returned, never
// before, unless the term is lost.
//
// When lead returns nil, Run campaigns anew, behind all others that wait, and without a pause. When it returns [ErrResign], Run
// returns nil. When it returns another error, Run returns that. An error of a term that was lost ends nothing,
// because the loss may have caused it. While the store fails, Run tries again, every few seconds.
//
// Other errors of Run: the cause of the end of ctx, and errors that no repetition helps, such as
// [asynclock.ErrClosed], [asynclock.ErrInvalidKey], [asynclock.ErrInvalidOption], [asynclock.ErrDenied],
// [asynclock.ErrReentry] under a term of the same key, or [asynclock.ErrUnsupported] for a value in a store without notes.
func Run(
	ctx context.Context, locks *asynclock.Client, key string, lead func(ctx context.Context, term *Term) error, options ...Option,
) error {
	if lead == nil {
		return failed(key, fmt.Errorf("%w: nil function", asynclock.ErrInvalidOption))
	}
	c, err := newCandidate(ctx, locks, key, options)
	if err != nil {
		return err
	}
	for failures := 0; ; {
		r := c.round(ctx, lead)
		switch {
		case errors.Is(r.leadErr, ErrResign):
			return nil
		case r.leadErr != nil:
			return r.leadErr
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isFinal(r.lockErr):
			return r.lockErr
		case r.led:
			failures = 0
		default:
			c.pause(ctx, failures)
			failures++
		}
	}
}

// A round is one campaign of Run, and the term that followed.
type round struct {
	led     bool
	leadErr error // of the function, if it ends the campaign
	lockErr error // of everything else
}

// round calls lead under one term. WithLock ends its context, and gives the leadership on, also if lead panics.
func (c *candidate) round(ctx context.Context, lead func(context.Context, *Term) error) (r round) {
	r.lockErr = c.locks.WithLock(ctx, c.key, func(termCtx context.Context, lease *asynclock.Lease) error {
		term, err := beginTerm(termCtx, lease, c.value, c.stats)
		if err != nil {
			return err
		}
		defer term.end()
		r.led = true
		r.leadErr = lead(termCtx, term)
		if ctx.Err() == nil && errors.Is(term.Err(), asynclock.ErrLost) && !errors.Is(r.leadErr, ErrResign) {
			r.leadErr = nil
		}
		return nil
	}, c.lock...)
	return r
}

// A candidate campaigns for one key.
type candidate struct {
	settings

	locks *asynclock.Client
	key   string
}

func newCandidate(ctx context.Context, locks *asynclock.Client, key string, options []Option) (*candidate, error) {
	if ctx == nil {
		return nil, failed(key, fmt.Errorf("%w: nil context", asynclock.ErrInvalidOption))
	}
	s, err := newSettings(key, options)
	if err != nil {
		return nil, err
	}
	s.lock = append([]asynclock.LockOption{asynclock.WithClass("election")}, s.lock...) // its wait is no wait for work
	return &candidate{s, locks, key}, nil
}

// The pauses between tries while the store fails.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = 5 * time.Second
)

// next campaigns until a term begins. It fails with the end of ctx, or with an error that no repetition helps.
func (c *candidate) next(ctx context.Context) (*Term, error) {
	for failures := 0; ; failures++ {
		term, err := c.try(ctx)
		if err == nil {
			return term, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if isFinal(err) {
			return nil, err
		}
		c.pause(ctx, failures)
	}
}

// isFinal reports whether no repetition helps. A campaign under a term of the same key would wait for that term.
func isFinal(err error) bool { return failure.Final(err) || errors.Is(err, asynclock.ErrReentry) }

// pause waits after a failure.
func (c *candidate) pause(ctx context.Context, failures int) {
	backoff.Sleep(ctx, backoff.Jitter(backoff.Doubled(firstPause, failures, mostPause), 0.2))
}

// try waits for the key and begins a term.
func (c *candidate) try(ctx context.Context) (*Term, error) {
	lease, err := c.locks.Lock(ctx, c.key, c.lock...)
	if err != nil {
		return nil, err
	}
	term, err := beginTerm(ctx, lease, c.value, c.stats)
	if err != nil {
		_ = lease.Unlock(ctx) // it is repeated in the background
		return nil, err
	}
	return term, nil
}
