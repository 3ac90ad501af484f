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

// checkWait makes a request with WithWait(0) one that does not wait. It refuses to let a TryLock
// wait.
func (w *waiter) checkWait() error {
	if w.try && w.settings.given&givenWait != 0 && w.settings.wait > 0 {
		return fmt.Errorf("%w: TryLock does not wait", ErrInvalidOption)
	}
	w.try = w.try || w.settings.wait == 0
	return nil
}

// boundWait makes the waiter's context end when [WithWait] says. It returns the function that
// releases the context's timer, or nil if there is none.
func (w *waiter) boundWait() context.CancelFunc {
	if w.try || w.settings.wait < 0 {
		return nil
	}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeoutCause(w.ctx, w.settings.wait, waitedError(w.settings.wait))
	return cancel
}
