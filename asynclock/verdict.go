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

// verdictLocked returns the verdict of the key's attempt, which is settled by the store's answer or by
// the attempt's end.
func (s *keyState) verdictLocked() *verdict {
	asked := s.machine.Asked()
	v, ok := (*asked).(*verdict)
	if !ok {
		v = &verdict{done: make(chan struct{})}
		*asked = v
	}
	return v
}

// settle answers those who wait for the verdict.
func (v *verdict) settle(err error) {
	v.err = err
	close(v.done)
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
