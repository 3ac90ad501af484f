// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/store"
)

// Announce is [Lease.SetNote], and tells observers of the key ([Client.Observe]) in the same step. From the first call
// on that sends something, the client also tells them when the lease ends, in whatever way. If it shares a holding by
// re-entry, that is when the last lease of the holding ends. The client tells them once, with no regard to the store's
// answer, and [Client.Close] waits for that as for a release. If the process dies, nobody tells them.
//
// In a store without announcements ([store.Features]), Announce is SetNote. Its errors are those of SetNote.
func (l *Lease) Announce(ctx context.Context, data []byte, ttl time.Duration) error {
	if l.isNone() {
		return &Error{Op: "announce", Err: errNoLease}
	}
	if err := l.writeNote(ctx, data, ttl, true); err != nil {
		return &Error{"announce", l.Key(), err}
	}
	return nil
}

// announcesEnd makes sure that observers are told of the end of the holding. Leases that joined it have its token, too, so
// it ends with the last of them.
func (l *Lease) announcesEnd(session store.ObserveSession) {
	root := l.root()
	if root.own.leaseContext().announced.Swap(true) {
		return
	}
	c := l.state.shard.client
	core := l.leaseCore // not l: the client does not keep what its caller has
	c.underWay.Add(1)   // Close waits for it
	root.whenOver(func() {
		defer c.leaveOf(&c.underWay)
		bounded := c.limits.bound(c.background, machine.CallTimeout(core.core.Terms.TTL), 0)
		defer bounded.leave()
		_ = session.AnnounceEnd(bounded, core.own.Key(), core.own.Token()) // a hint: observers look anyway
	})
}

// whenOver calls f when l and all leases that share its holding have ended, in a goroutine of its own.
func (l *leaseCore) whenOver(f func()) {
	context.AfterFunc(l.own.Context(), func() {
		if other := l.lasting(); other != nil {
			other.whenOver(f)
			return
		}
		f()
	})
}

// lasting returns a lease of the same holding that has not ended, or nil.
func (l *leaseCore) lasting() *leaseCore {
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if other := l.core.Lasting(); other != nil {
		return leaseOf(other)
	}
	return nil
}
