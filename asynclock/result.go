// SPDX-License-Identifier: Apache-2.0

package asynclock

import "github.com/asynclock/asynclock-go/internal/clock"

// A Result is what the channel of [Client.LockChan] yields.
type Result struct {
	waiter *waiter
}

// Lease claims the lease: from here on it is the caller's, who has to unlock
// it, and the watchdog renews it. The error is that of [Client.Lock], or says
// why the grant was given back before this call: ctx's error, [ErrClosed],
// [ErrNotClaimed] or [ErrLost]. Called again it gives the same answer.
func (r Result) Lease() (*Lease, error) {
	w := r.waiter
	if w == nil {
		return nil, ErrNotClaimed // the zero Result, from no channel of ours
	}
	if w.state == nil {
		return nil, w.err // refused before it was queued
	}
	s := w.state
	s.shard.mu.Lock()
	defer s.shard.unlock(s.client)
	if w.stage == granted {
		switch { // what ended it may not have been noticed yet
		case w.ctx.Err() != nil:
			s.takeBackLocked(waitEnded(w.ctx))
		case clock.Refresh() >= s.tenure.deadline:
			s.takeBackLocked(ErrNotClaimed)
		default:
			s.claimLocked(w)
		}
	}
	if w.err != nil {
		return nil, &Error{"lock", s.key, w.err}
	}
	return w.lease, nil
}
