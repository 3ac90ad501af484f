// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// A RenewRequest extends one holding.
type RenewRequest struct {
	Key          string
	Owner        string
	TTL          time.Duration
	Token        int64  // the last token used; the store's next one is larger. With 0, a lost holding is never brought back
	NotifyQueued bool   // as in [AcquireRequest], from now on; false changes nothing
	Description  string // of the owner, in case the store has lost it
	// Share is what the owner has now. Of Permits the store lowers a larger weight to this one, and
	// grants nothing in this step. If the weight here is larger than the store's, the store's counts: a
	// Rest came between. No request raises a weight.
	Share Share
}

// A RenewReply answers a [RenewRequest]. Err is nil if this request has set the TTL,
// [ErrExpired] if nobody holds the key or others share it as this owner did, and [ErrStolen] if another owner has it otherwise.
type RenewReply struct {
	Waiters int           // as in [AcquireReply]
	TTL     time.Duration // as in [AcquireReply]
	Limit   int32         // as in [AcquireReply], for an owner of Permits
	Err     error
}
