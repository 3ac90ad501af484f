// SPDX-License-Identifier: Apache-2.0

package once

import (
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// The bounds of an interval.
const (
	MinInterval = time.Second
	MaxInterval = 366 * 24 * time.Hour
)

// mostEarly is the most by which a call may be early.
const mostEarly = 30 * time.Second

// A schedule says when intervals begin.
type schedule struct {
	every  time.Duration
	offset time.Duration
}

func (s schedule) check() error {
	switch {
	case s.every < MinInterval || s.every > MaxInterval:
		return fmt.Errorf("%w: interval %v is outside %v to %v", asynclock.ErrInvalidOption, s.every, MinInterval, MaxInterval)
	case s.every%time.Microsecond != 0:
		return fmt.Errorf("%w: interval %v is no whole number of microseconds", asynclock.ErrInvalidOption, s.every)
	case s.offset < 0 || s.offset >= s.every:
		return fmt.Errorf("%w: offset %v is outside 0 to the interval of %v", asynclock.ErrInvalidOption, s.offset, s.every)
	}
	return nil
}

// startAt returns the beginning of the interval that a call at this time counts for.
func (s schedule) startAt(now time.Time) time.Time {
	early := min(s.every/10, mostEarly)
	every := s.every.Microseconds()
	since := now.Add(early - s.offset).UnixMicro()
	number := since / every
	if since%every < 0 {
		number-- // before 1970
	}
	return time.UnixMicro(number * every).Add(s.offset).UTC()
}

// missed returns how many whole intervals lie between two runs.
func (s schedule) missed(last, start time.Time) int {
	return int(min(max(start.Sub(last)/s.every-1, 0), mostCount))
}

// lockTTL is how long a process that has died keeps others from the job: a part of the interval, so that the job can be
// repeated in it. A smaller part would lose leases that live in short outages of the store.
func (s schedule) lockTTL(longest time.Duration) time.Duration {
	return min(longest, max(s.every/3, asynclock.MinTTL)).Truncate(time.Millisecond)
}

// noteTTL is how long the record of a run is kept.
func (s schedule) noteTTL() time.Duration {
	return max(7*24*time.Hour, 3*s.every)
}

// A clock is the store's, as it was read. This process adds what has passed since.
type clock struct {
	store time.Time
	here  time.Time
}

func (c clock) now() time.Time { return c.store.Add(time.Since(c.here)) }
