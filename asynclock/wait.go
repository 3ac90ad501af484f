// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"fmt"
	"time"
)

// A waitedError is the cause of a context that [WithWait] has ended.
type waitedError time.Duration

func (e waitedError) Error() string { return fmt.Sprintf("waited for %v", time.Duration(e)) }
func (waitedError) Unwrap() error   { return context.DeadlineExceeded }

// errNoAnswer is what a wait ended in that was over before the store had answered its first request.
var errNoAnswer = fmt.Errorf("%w: no answer yet", ErrUnreachable)

// neverWaits reports whether a request with these settings does not wait: a TryLock, or one with
// WithWait(0). It refuses to let a TryLock wait.
func (s *lockSettings) neverWaits(try bool) (bool, error) {
	if try && s.given&givenWait != 0 && s.wait > 0 {
		return true, fmt.Errorf("%w: TryLock does not wait", ErrInvalidOption)
	}
	return try || s.wait == 0, nil
}

// boundWait makes the waiter's context end when [WithWait] says. It returns the function that
// releases the context's timer, or nil if there is none.
func (w *waiter) boundWait(wait time.Duration) context.CancelFunc {
	if w.Try || wait < 0 {
		return nil
	}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeoutCause(w.ctx, wait, waitedError(wait))
	return cancel
}
