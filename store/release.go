// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// A ReleaseRequest ends one owner's holding or waiting.
type ReleaseRequest struct {
	Key   string
	Owner string
	Token int64 // the last token used, if held; the store's next one is larger

	// HoldBack keeps what the owner had from everybody for this long, so others have only what
	// fits beside that. Meanwhile nobody can renew it, Inspect shows it as held, and Force ends
	// that.
	HoldBack time.Duration
	// Uncertain: an earlier request of this owner had no reply, and may still take
	// effect. For a while the store refuses this owner, so that a late request can't
	// bring it back.
	Uncertain bool
	// Clean: no release of this owner was sent before, all its renewals were answered,
	// and the client trusts the holding now. A store whose servers may forget something,
	// as in a failover, then knows that a holding that it finds has not ended elsewhere.
	// A store may ignore it.
	Clean bool
	// Rest, if not nil, is what the owner keeps: fewer Permits, or Shared instead of Exclusive. The
	// holding goes on under the same owner. Rest can be repeated, and may come out of order: Permits
	// only become fewer, and what is Shared stays so. HoldBack is then about the permits that are
	// given up. A Rest excludes Requeue and Uncertain, which are about an owner that ends.
	//
	// A client sends one Rest of an owner at a time. Until that is answered, its renewals have the
	// weight from before. Otherwise they could overtake the Rest and lower the weight themselves, and
	// nothing would be left for HoldBack to keep.
	Rest *Share
	// Requeue, if not nil, puts this client at the tail of the queue in the same step,
	// under a new owner id. If it has Wait false, which only stores with
	// Features.Retention get, it takes the key if that is free now.
	Requeue *AcquireRequest
}

// A ReleaseReply answers a [ReleaseRequest].
type ReleaseReply struct {
	WasHeld bool // the owner held the key until now
	// Cause is set if WasHeld and Err are not: [ErrExpired] if nobody holds the key or others
	// share it, and [ErrStolen] if another owner has all of it. A store with Features.Sessions may say instead how
	// the holding has ended, by an error that matches [ErrLost].
	Cause   error
	Requeue *AcquireReply // answers Requeue, if there was one
	Grant   Grant         // if WasHeld and Rest is Shared: the numbers of what the owner has now
	Err     error
}
