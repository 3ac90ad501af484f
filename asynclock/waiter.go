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
	sent       bool       // the result is in the channel, or was received
	counted    bool       // its result was looked at; guarded by each
	several    bool       // it is for one of several keys
	verdict    counter    // as what it counts if it fails; 0: its error says
	watchPlace int32      // index in watch
	watch      *watch
	each       *each            // the LockEach that it is of; nil if none
	future     weakChan[Result] // of a future: its channel
	origin     *origin          // of its call, if leaks are detected or there are hooks
	result     chan Result      // has room for one; nil until somebody listens, and while a future is pending
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

// lease returns the waiter's lease, or nil.
func (w *waiter) lease() *Lease {
	if w.Lease == nil {
		return nil
	}
	l := leaseOf(w.Lease)
	if leaks := l.state.shard.client.leaks; leaks != nil {
		return leaks.handleOf(l, w)
	}
	return &l.own
}

// decidedLocked gives the waiter its result, which does not change any more.
func (s *keyState) decidedLocked(decided *machine.Waiter, blocker int64) {
	w := decided.Caller.(*waiter) //nolint:forcetypeassert // begin has put it there
	if w.Stage == machine.Ended {
		w.Err = s.publicError(w.Err)
	}
	outcome := w.countDecidedLocked()
	if w.origin != nil {
		w.lease() // its caller may never look at the result
		w.asked().decided(w, outcome, blocker)
	}
	if stop := s.shard.unwatchLocked(w); stop != nil {
		s.shard.client.stops.Add(0, stop)
	}
	w.Send()
}

// A waiter is what its key's machine calls, under the shard's mutex.
var _ machine.Caller = (*waiter)(nil)

// Each of these types is one allocation for what lasts equally long.
type (
	holdingAndLease struct {
		holding machine.Holding
		lease   leaseCore
	}
	holdingAndTied struct {
		holding machine.Holding
		lease   tiedLease
	}
	tiedLease struct {
		leaseCore

		ties machine.Ties
	}
)

// NewHolding makes a holding with the waiter's lease.
func (w *waiter) NewHolding() (*machine.Holding, *machine.Lease) {
	if w.isTied() {
		made := new(holdingAndTied)
		return &made.holding, made.lease.begin(w)
	}
	made := new(holdingAndLease)
	return &made.holding, made.lease.begin(w)
}

// NewLease makes the waiter's lease.
func (w *waiter) NewLease() *machine.Lease {
	if w.isTied() {
		return new(tiedLease).begin(w)
	}
	return new(leaseCore).begin(w)
}

// isTied reports whether the waiter's lease will have ties, as far as that is known before.
func (w *waiter) isTied() bool { return w.several || w.NeedsTies() }

func (l *tiedLease) begin(w *waiter) *machine.Lease {
	l.core.Ties = &l.ties
	return l.leaseCore.begin(w)
}

// Lies reports whether the waiter's result is still in its channel.
func (w *waiter) Lies() bool {
	if w.each == nil {
		return w.result == nil || len(w.result) > 0
	}
	return w.each.lies(w)
}

// IsGone reports whether nobody can receive the waiter's result any more.
func (w *waiter) IsGone() bool { return w.future.isGone() }

// Bound returns the channel of the context that the caller of a future gave, or nil if that never ends.
func (w *waiter) Bound() <-chan struct{} {
	if w.watch == nil {
		return nil
	}
	return w.watch.caller
}

// Send puts the waiter's one result into its channel. It reports whether somebody has received it at once.
func (w *waiter) Send() (received bool) {
	if w.sent {
		return false
	}
	w.sent = true
	if w.each != nil {
		return w.each.send(w)
	}
	if w.result == nil {
		w.result = w.future.get() // held from now on: "gone" must not look like "received"
	}
	if w.result == nil {
		return false // nobody listens yet, or nobody can any more
	}
	w.result <- Result{waiter: w}
	return len(w.result) == 0
}

// TakeBack takes the waiter's result out of its channel. It reports whether it was still there.
func (w *waiter) TakeBack() (found bool) {
	switch {
	case w.each != nil:
		return w.each.takeBack(w)
	case w.result != nil:
		select {
		case <-w.result:
		default:
			return false
		}
	}
	w.sent, w.result = false, nil
	return true
}
