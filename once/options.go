// SPDX-License-Identifier: Apache-2.0

package once

import (
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// An Option configures a job. All processes should give the same ones.
type Option func(*job) error

// WithOffset moves the beginnings of all intervals: with 24 h and an offset of 3 h, they are at 3:00 UTC.
// Default 0; less than the interval.
func WithOffset(d time.Duration) Option {
	return func(j *job) error {
		j.schedule.offset = d
		return nil
	}
}

// WithAttempts bounds how often the job begins in one interval. A further attempt is made only if the one
// before has not ended: its process died, or lost its lease, or was told to stop. With 1 the job runs at
// most once in an interval, and maybe not to its end. Default: no bound; otherwise from 1.
func WithAttempts(n int) Option {
	return func(j *job) error {
		if n < 1 {
			return fmt.Errorf("%w: %d attempts", asynclock.ErrInvalidOption, n)
		}
		j.attempts = n
		return nil
	}
}

// WithLockOptions passes options on to the lock under which the job runs, for example
// [asynclock.WithTTL]. Without it the TTL is that of the client, but a third of the interval at most. These have no effect: WithWait, WithReentry, WithMinHold, WithRetention.
func WithLockOptions(options ...asynclock.LockOption) Option {
	return func(j *job) error {
		j.lock = append(j.lock, options...)
		return nil
	}
}
