// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/store"
)

// Announce is [Lease.SetNote], and tells observers of the key ([Client.Observe]) in the same step. From the first call
// on, the client also tells them when the lease ends, in whatever way. It tells them once, with no regard to the store's
// answer, and [Client.Close] waits for that as for a release. If the process dies, nobody tells them.
//
// In a store without announcements ([Features]), Announce is SetNote. Its errors are those of SetNote.
func (l *Lease) Announce(ctx context.Context, data []byte, ttl time.Duration) error {
	if l.isNone() {
		return &Error{Op: "announce", Err: errNoLease}
	}
	if err := l.writeNote(ctx, data, ttl, true); err != nil {
		return &Error{"announce", l.Key(), err}
	}
	return nil
}

// announcesEnd makes sure that observers are told of the end of the lease.
func (l *Lease) announcesEnd() {
	c := l.state.shard.client
	session, ok := c.session.(store.ObserveSession)
	if !ok || !c.features.Announcements {
		return
	}
	ctx, _ := l.Context().(*leaseContext)
	if ctx.announced.Swap(true) {
		return
	}
	c.underWay.Add(1) // Close waits for it
	context.AfterFunc(ctx, func() {
		defer c.leaveOf(&c.underWay)
		bounded := c.limits.bound(c.background, machine.CallTimeout(l.core.Terms.TTL), 0)
		defer bounded.leave()
		_ = session.AnnounceEnd(bounded, l.Key(), l.core.Token) // a hint: observers look anyway
	})
}
