// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

// A keyState is its machine's host. All methods in this file are called in steps of the machine, under
// the shard's mutex.
var _ machine.Host = (*keyState)(nil)

// NewOwner makes an owner id whose events reach this key.
func (s *keyState) NewOwner() string {
	owner := newOwner(s.shard.number)
	s.shard.owners[owner] = s
	return owner
}

// DropOwner makes later events for the owner reach nobody.
func (s *keyState) DropOwner(owner string) { delete(s.shard.owners, owner) }

// A holdingAndLease is a holding with its first lease, in one allocation.
type holdingAndLease struct {
	holding machine.Holding
	lease   leaseCore
}

// NewHolding makes a holding with the lease of w.
func (s *keyState) NewHolding(w *machine.Waiter) (*machine.Holding, *machine.Lease) {
	made := new(holdingAndLease)
	return &made.holding, made.lease.begin(s, callerOf(w))
}

// NewLease makes the lease of w.
func (s *keyState) NewLease(w *machine.Waiter) *machine.Lease {
	return new(leaseCore).begin(s, callerOf(w))
}

// IsRoot forgets the context of the caller that the root of a tenure was made for. The tenure may last much
// longer than that caller's lease, and would keep all values of its context.
func (s *keyState) IsRoot(l *machine.Lease) { leaseOf(l).own.context = context.Background() }

// NewRelease makes a release, for which Close waits.
func (s *keyState) NewRelease() *machine.Release {
	c := s.shard.client
	call := &releaseCall{client: c, lane: s.Lane()}
	call.core.Caller, call.entry.Task = call, call
	c.underWay.Add(1)
	return &call.core
}

// Send puts the result of w into its channel.
func (s *keyState) Send(w *machine.Waiter) bool { return callerOf(w).sendLocked() }

// Lies reports whether the result of w is still in its channel.
func (s *keyState) Lies(w *machine.Waiter) bool { return callerOf(w).liesLocked() }

// IsGone reports whether nobody can receive the result of w any more.
func (s *keyState) IsGone(w *machine.Waiter) bool { return callerOf(w).future.isGone() }

// TellEnded tells everybody that a lease has ended.
func (s *keyState) TellEnded(l *machine.Lease) { leaseOf(l).endedLocked() }

// TakeBack takes the result of w out of its channel, if it is still there.
func (s *keyState) TakeBack(w *machine.Waiter) bool { return callerOf(w).takeBackLocked() }

// Queues reports whether the store has a queue.
func (s *keyState) Queues() bool { return s.shard.client.features.FIFO }

// TriesRequeue reports whether the store takes the request of a try with a release.
func (s *keyState) TriesRequeue() bool { return s.shard.client.features.Retention }

// Lane returns the store's lane of the key.
func (s *keyState) Lane() int { return s.shard.client.session.Lane(s.machine.Name) }

// Keys returns how many keys the client uses.
func (s *keyState) Keys() int { return int(s.shard.client.inUse.Load()) }

// Leaves counts a release that leaves.
func (s *keyState) Leaves() {
	if s.shard.leaving == nil {
		s.shard.leaving = make(map[string]int)
	}
	s.shard.leaving[s.machine.Name]++
}

// Leaving returns how many releases that leave have no answer yet.
func (s *keyState) Leaving() int { return s.shard.leaving[s.machine.Name] }

// Closing reports whether Close was called.
func (s *keyState) Closing() bool { return s.shard.client.closing.Load() }
