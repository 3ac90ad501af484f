// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"errors"
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Result is the value that the channels of [Client.LockChan] and [Client.LockEach] yield. The zero
// Result is none.
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

// Lease claims the lease. From then on the caller owns the lease and has to unlock it, and the
// watchdog renews it. The error is that of [Client.Lock], or the reason why the grant was given
// back before this call: ctx's error, [ErrClosed], [ErrNotClaimed] or [ErrLost]. Every call returns
// the same answer.
func (r Result) Lease() (*Lease, error) {
	w := r.waiter
	if w == nil {
		return nil, fmt.Errorf("%w: the zero Result", ErrInvalidOption)
	}
	if w.state == nil {
		return nil, w.Err // refused before it was queued
	}
	l, err := w.claim()
	if err != nil {
		return nil, &Error{w.op(), w.state.machine.Name, err}
	}
	return l, nil
}

// claim makes a granted lease its caller's, unless the grant has ended. It checks the causes of an
// end itself, because nobody may have noticed them yet.
func (w *waiter) claim() (*Lease, error) {
	l, stop, err := w.settle(waitEnded(w.ctx))
	if stop != nil {
		stop()
	}
	return l, err
}

// settle is claim by a caller whose context has or has not ended. It also returns the function that
// stops the watch for the context's end, if the caller has to call it.
func (w *waiter) settle(ended error) (l *Lease, stop func() bool, err error) {
	s := w.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	now := watchdog.Refresh()
	var fx machine.Effects
	s.machine.Claim(&w.Waiter, ended, now, &fx)
	if w.Stage == machine.Claimed || w.Stage == machine.Ended {
		stop = s.shard.unwatchLocked(w)
	}
	s.carryOutLocked(&fx, now)
	return w.lease(), stop, w.Err
}
