// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

// A waiter is one pending acquisition: a call of Lock or TryLock, or a channel that LockChan returned.
// Its fields are guarded by its key's shard.
type waiter struct {
	machine.Waiter

	state *keyState
	ctx   context.Context //nolint:containedctx // bounds the waiting; its values go into the lease

	semaphore  *Semaphore // whose permits it wants; nil if none
	mode       Mode       // what it takes of the key
	sent       bool       // the result is in the channel, or was
	watchPlace int32      // index in watch
	watch      *watch
	result     chan Result // has room for one; nil until somebody listens
}

// newWaiter makes a waiter that is bounded by ctx.
func newWaiter(ctx context.Context) *waiter { return new(waiter).begin(ctx) }

// begin makes the zero waiter one that is bounded by ctx.
func (w *waiter) begin(ctx context.Context) *waiter {
	w.ctx, w.Caller = ctx, w
	return w
}

// op returns the name of the waiter's call in errors.
func (w *waiter) op() string {
	switch w.mode {
	case Shared:
		return "rlock"
	case Permits:
		return "acquire"
	default:
		return "lock"
	}
}

// callerOf returns the waiter that the machine knows as w.
func callerOf(w *machine.Waiter) *waiter {
	return w.Caller.(*waiter) //nolint:forcetypeassert // newWaiter has put it there
}

// lease returns the waiter's lease, or nil.
func (w *waiter) lease() *Lease {
	if w.Lease == nil {
		return nil
	}
	return leaseOf(w.Lease)
}

// waitAnew makes w a waiter that has not arrived yet: the lease that it joined has ended.
func (w *waiter) waitAnew() { w.Stage, w.Err, w.Lease = machine.Queued, nil, nil }

// decidedLocked gives the waiter its result.
func (s *keyState) decidedLocked(w *waiter) {
	if w.Stage == machine.Ended || w.Stage == machine.Again {
		w.Err = s.publicError(w.Err)
		if stop := s.shard.unwatchLocked(w); stop != nil {
			s.shard.client.stops.Add(0, stop)
		}
	}
	if w.Stage == machine.Again {
		w.waitAnew()
		go s.shard.client.enqueueNow(w, s.machine.Name) // does not wait; after the lease has ended
		return
	}
	w.sendLocked()
}

// sendLocked puts the waiter's one result into its channel.
func (w *waiter) sendLocked() {
	if w.sent {
		return
	}
	w.sent = true
	if w.result != nil {
		w.result <- Result{waiter: w}
	}
}
