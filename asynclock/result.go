// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"errors"
	"fmt"
)

// A Result is the value that the channels of [Client.LockChan] and [Client.LockEach] yield: a lease, which is
// the receiver's, or an error. The zero Result is none.
type Result struct {
	waiter *waiter
}

// Key returns the key that was requested.
func (r Result) Key() string {
	w := r.waiter
	switch {
	case w == nil:
		return ""
	case w.state != nil:
		return w.state.machine.Name
	}
	var refused *Error // before it was queued
	errors.As(w.Err, &refused)
	return refused.Key
}

// Lease returns the lease, which is the caller's since it has received the Result. The error is that of
// [Client.Lock], or [ErrLost] if the lease has ended before this call. Every call returns the same answer.
func (r Result) Lease() (*Lease, error) {
	w := r.waiter
	if w == nil {
		return nil, fmt.Errorf("%w: the zero Result", ErrInvalidOption)
	}
	defer w.each.received(w)
	if w.state == nil {
		return nil, w.Err // refused before it was queued
	}
	l, err := w.look()
	if err != nil {
		return nil, &Error{w.op(), w.state.machine.Name, err}
	}
	return l, nil
}

// look tells the machine that the result was received, and returns it.
func (w *waiter) look() (*Lease, error) {
	s := w.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	st := s.stepNow()
	s.machine.Received(&w.Waiter, &st)
	s.carryOutLocked(&st)
	return w.lease(), w.Err
}
