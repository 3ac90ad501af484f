// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
)

// A verdict is the store's first answer to the request of an attempt, for TryLocks of the same
// client that find this request under way. Nobody may hold the key, so they can't be refused. They
// send no request of their own, because a client has one owner id for a key.
type verdict struct {
	done chan struct{}
	err  error // once done is closed; nil: look again
}

// verdictLocked returns the attempt's verdict, which is settled by the store's answer or by the
// attempt's end.
func (a *attempt) verdictLocked() *verdict {
	if a.verdict == nil {
		a.verdict = &verdict{done: make(chan struct{})}
	}
	return a.verdict
}

// settleLocked answers the TryLocks that wait for the verdict, if there are any.
func (a *attempt) settleLocked(err error) {
	if v := a.verdict; v != nil {
		a.verdict = nil
		v.err = err
		close(v.done)
	}
}

// await returns the error of a TryLock that has waited for the verdict, or nil if it has to look
// again.
func (v *verdict) await(ctx context.Context) error {
	select {
	case <-v.done:
	case <-ctx.Done():
		return waitEnded(ctx)
	}
	var held *HeldError
	var grace *GraceError
	switch { // each caller gets its own
	case errors.As(v.err, &held):
		own := *held
		return &own
	case errors.As(v.err, &grace):
		own := *grace
		return &own
	}
	return v.err
}
