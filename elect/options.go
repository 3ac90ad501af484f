// SPDX-License-Identifier: Apache-2.0

package elect

import (
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// An Option configures a candidate or an observer.
type Option func(*settings) error

type settings struct {
	value    []byte
	lock     []asynclock.LockOption
	interval time.Duration
	stats    *Stats // nil: nothing is counted
}

// The bounds of [WithInterval].
const (
	MinInterval = 100 * time.Millisecond
	MaxInterval = time.Hour
)

// WithValue is what observers see of this candidate once it leads, for example an address. At most
// [asynclock.MaxNoteLen] bytes. Default: empty.
func WithValue(value []byte) Option {
	return func(s *settings) error {
		if len(value) > asynclock.MaxNoteLen {
			return fmt.Errorf("%w: a value of %d bytes, at most %d are allowed", asynclock.ErrInvalidOption, len(value), asynclock.MaxNoteLen)
		}
		s.value = append([]byte(nil), value...)
		return nil
	}
}

// WithLockOptions passes options on to the lock of the key, for example [asynclock.WithTTL] or
// [asynclock.WithMaxHold], which bounds each term. The class of the key is election, unless they say otherwise. These have no effect: WithWait, WithReentry, WithRetention.
func WithLockOptions(options ...asynclock.LockOption) Option {
	return func(s *settings) error {
		s.lock = append(s.lock, options...)
		return nil
	}
}

// WithInterval is how often an observer looks, whether or not announcements come through: from [MinInterval] to
// [MaxInterval]. Each look is one request, or two while the key is held by who has written no note. Default: every
// 15 s while announcements come through, and otherwise every 2 s.
func WithInterval(d time.Duration) Option {
	return func(s *settings) error {
		if d < MinInterval || d > MaxInterval {
			return fmt.Errorf("%w: interval %v is outside %v to %v", asynclock.ErrInvalidOption, d, MinInterval, MaxInterval)
		}
		s.interval = d
		return nil
	}
}

// anyWait is a wait that no client's default shortens.
const anyWait = 10 * 365 * 24 * time.Hour

func newSettings(key string, options []Option) (settings, error) {
	var s settings
	for _, o := range options {
		if o == nil {
			return s, failed(key, fmt.Errorf("%w: nil option", asynclock.ErrInvalidOption))
		}
		if err := o(&s); err != nil {
			return s, failed(key, err)
		}
	}
	// A term is never retained, because nobody would lead. A campaign under a term joins none, because it would lead twice.
	s.lock = append(s.lock, asynclock.WithWait(anyWait), asynclock.WithReentry(false), asynclock.WithRetention(0))
	return s, nil
}

func failed(key string, err error) error { return &asynclock.Error{Op: "elect", Key: key, Err: err} }
