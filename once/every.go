// SPDX-License-Identifier: Apache-2.0

package once

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/internal/failure"
)

// Every calls [Do] for each interval until ctx ends: at once for the present one, and then when the next one
// begins. It calls again every tenth of the interval, but at least every 5 s, while another process runs the job, which
// may die, or while the store fails. Calls of processes are spread over a hundredth of the
// interval, and at most a second.
//
// Run it in every process that can do the job. It has no goroutine of its own: fn runs on the caller's. If a
// run takes longer than the interval, the next one begins after it, and Missed counts those between.
//
// An error of fn does not end Every; it is in the record of the run ([LastRun]). The error of Every is the cause
// of the end of ctx, or an error that no repetition helps, such as [asynclock.ErrClosed],
// [asynclock.ErrInvalidOption], [asynclock.ErrUnsupported] or [asynclock.ErrForeignData]. A record of a later release
// does not end Every: it waits for the next interval.
func Every(
	ctx context.Context, locks *asynclock.Client, key string, every time.Duration,
	fn func(ctx context.Context, run Run) error, options ...Option,
) error {
	j, err := newJob(locks, key, every, fn, options)
	if err != nil {
		return err
	}
	for {
		r := j.do(ctx)
		if failure.Final(r.lockErr) && !errors.Is(r.lockErr, errLater) {
			return r.lockErr
		}
		if ctx.Err() == nil {
			backoff.Sleep(ctx, r.pause())
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

const (
	mostSpread = time.Second
	mostPause  = 5 * time.Second
	leastPause = 100 * time.Millisecond // after a store's grace that has ended by now
	// far is from where on a pause is divided. Clocks differ in their rates, and timers stop while a
	// machine is suspended.
	far = 2 * time.Hour
)

// pause returns how long to wait before the next call.
func (r *round) pause() time.Duration {
	if !r.settled {
		return backoff.Jitter(min(r.schedule.every/10, mostPause), 0.2)
	}
	left := r.left()
	if left > far {
		return left / 2
	}
	return max(left+rand.N(min(r.schedule.every/100, mostSpread)), 0)
}

// left returns how long the present interval lasts.
func (r *round) left() time.Duration { return r.start.Add(r.schedule.every).Sub(r.clock.now()) }
