// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// An AcquireRequest requests one key, for one owner.
type AcquireRequest struct {
	Key   string
	Owner string // names this acquisition; a secret

	TTL       time.Duration // of the holding, if the reply grants it
	GrantTTL  time.Duration // of the holding, if an [EventGrant] grants it
	WaiterTTL time.Duration // remove the waiter if it is silent for this long

	Wait       bool // join the queue if the key is not free; true in each further request of an owner that has joined
	QueueLimit int  // don't join a queue of this length without a Ticket; 0: no limit
	// Ticket is the place in the queue that an earlier reply gave; 0: none yet. It may be that of another key of
	// the same lane. Then the owner is queued before those who got a later ticket. A store with Features.Sessions
	// ignores it.
	Ticket int64

	// NotifyQueued requests [EventQueued] once another client queues for the key while
	// this owner holds it.
	NotifyQueued bool
	// NotifyRequests requests [EventRequested] for each request that is refused because
	// this owner holds the key. It is for stores with Features.Retention. All requests of
	// one owner have the same value.
	NotifyRequests bool

	// Share is what the owner takes of the key. It may change from request to request while the
	// owner waits, and keeps its place.
	Share Share
	// Extra, for Permits: how many more the owner could use at once. It gets as many of them as are
	// free, if nobody is queued behind it.
	Extra int32

	Description string // of the owner, for people
}

// An AcquireStatus is the outcome of an [AcquireRequest].
type AcquireStatus int

// The outcomes of an AcquireRequest.
const (
	_         AcquireStatus = iota
	Granted                 // the owner holds the key, and this request has set its TTL
	Waiting                 // the owner is in the queue
	Held                    // another owner holds the key or is ahead, and Wait was false
	Full                    // the queue is at its limit
	Withdrawn               // an earlier Release withdrew this owner; it is never granted the key
	TooMuch                 // the Weight is above the limit that [LimitSession] has stored; the owner is not in the queue any more
)

// An AcquireReply answers an [AcquireRequest].
type AcquireReply struct {
	Status AcquireStatus
	Grant  // if Granted

	Holder         string // if Waiting or Held, and known: the description of the holder
	HolderToken    int64  // if Waiting or Held, and known: the token of the holder
	HolderNotified bool   // if Held: [EventRequested] was sent to the holder, which may give the key back

	// Remaining, if Waiting or Held: of the holder's TTL; negative as in [Info]. If several hold the
	// key, it is the shortest TTL for who requests Permits, and otherwise the longest.
	Remaining time.Duration
	Rank      int   // if Waiting: how many waiters are ahead
	Ticket    int64 // if Waiting: to be sent with the next request of this owner
	Mark      int64 // if Waiting: a grant with a token up to this is older than this reply; 0 if the store sends no [EventGrant]
	// Recheck, if Waiting and not zero: ask again this soon, because notifications may
	// not arrive. Zero: the client's own timers are enough.
	Recheck time.Duration
	// Grace, if not zero: for this long the store grants nothing to anyone, because it may
	// have forgotten a holding. It comes with Waiting, and with an error that wraps
	// [ErrUnreachable].
	Grace time.Duration
	// WillNotify, if Granted or Waiting: the request had NotifyRequests, and
	// notifications reach this client at present.
	WillNotify bool

	// Waiters, if Granted, Held or Full: how many are queued. It may count some that have died,
	// until the next handoff drops them. [Session.Inspect] counts the living only.
	Waiters int

	// Limit, for a request of Permits: how many there are, as the store counts. It is the stored limit of
	// [LimitSession], or otherwise the smallest Limit of the holders and of this request. It is 0 if the
	// store does not say, as with Withdrawn.
	Limit int32

	// Used, for a request of Permits that is Waiting or Held: how many are out. It is 0 if nobody has the key, or
	// somebody has it in another mode.
	Used int

	// TTL, if Granted and not zero, is the TTL that the store has set, where that is less
	// than requested. It counts from when the request was sent.
	TTL time.Duration

	Err error
}

// A Grant gives a key to an owner.
type Grant struct {
	Token    int64 // the fencing token; 0 from a store without tokens
	Reserved int64 // how many tokens after Token are set aside for this holder
	// Fence is the fencing token of a Shared lease. All that hold the key together have the same, except
	// in a store with Features.Sessions.
	// It is larger than the token of every Exclusive lease before them, and smaller than that of
	// every one after. Token is then the grant's own number, and larger than those of earlier grants.
	Fence int64
	// Weight, for Permits, is how many were granted: from Share.Weight to that and Extra.
	Weight int32

	// TokensFollowClock: besides Reserved, one more token becomes free with each
	// microsecond since the grant, because the store's tokens rise with its clock.
	TokensFollowClock bool
}
