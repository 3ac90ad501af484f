// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"iter"
	"time"
)

// A Store is where locks live. One Store serves any number of clients; each
// joins it once, in [New].
//
// A Store is an implementation's side of this package. Programs that only use
// locks need [New] and nothing below.
type Store interface {
	// Join connects one client. The id names it in the store for as long as the
	// session lasts and is unique; events is called, from any goroutine, with
	// what the store has to tell this client and never blocks. Events are
	// hints: they may be lost, late, repeated or out of order.
	Join(id string, events func(Event)) (Session, error)

	// Features says what this store can do. It is constant.
	Features() Features
}

// Features says what a store offers beyond exclusion, which all of them do.
type Features struct {
	// Tokens: every grant carries a fencing token that rises with each holder
	// of a key. Without it tokens are zero.
	Tokens bool
	// FIFO: waiting clients are queued in the store and granted in their order.
	// Without it they contend, and whoever asks first after a release wins.
	FIFO bool
	// Sessions: the server knows who is connected, and no TTL; it is the client's
	// side of the store that ends what is not renewed. Then what remains of a TTL
	// is not known to others, an expired holding passes on at once, a waiter that
	// was dropped comes back at the tail of the queue, and the only tokens of a
	// grant are First and Spare, below all later ones without being written back.
	Sessions bool
	// Wanted: a holder can ask to be told whenever another client wants its key
	// ([EventWanted]), and a release can ask for the key anew without waiting.
	// Without it no key is retained ([WithRetention]).
	Wanted bool
}

// A Session is one client's connection to a [Store].
//
// Acquire, Renew and Release take a batch, all of one [Session.Lane], and
// answer each element on its own: the reply at index i belongs to the request
// at index i, and one element's failure says nothing about its neighbors. They
// return when ctx ends, if not before.
//
// Every request is made safe to repeat by its owner id, which names one
// acquisition and is never used again. A request whose reply was lost is simply
// sent again.
//
// An error in a reply is one of: [ErrUnreachable] (nothing happened, or the
// server refuses for now; worth trying again), [ErrOutcomeUnknown] (it may or
// may not have happened; worth trying again), ctx's own error (outcome unknown
// too), or anything else, which is final for that request.
type Session interface {
	// Lane says which requests share a path to the server. Requests of one lane
	// may wait for each other; those of different lanes never do. Lanes are
	// small numbers from 0.
	Lane(key string) int

	// Acquire takes each key, or joins its queue, or (without Wait) does
	// neither. Sent again for the same owner it is also the waiter's heartbeat
	// and the way to learn of a grant that was missed.
	Acquire(ctx context.Context, batch []AcquireRequest) []AcquireReply

	// Renew extends holdings. It never shortens one, and never brings a lost one
	// back, unless the store knows that it may have forgotten it and has given the
	// key to nobody since.
	Renew(ctx context.Context, batch []RenewRequest) []RenewReply

	// Release ends whatever each owner has: its holding, which passes to the
	// next waiter in the same step, or its place in the queue.
	Release(ctx context.Context, batch []ReleaseRequest) []ReleaseReply

	// Inspect says who holds key and who waits for it.
	Inspect(ctx context.Context, key string) (Info, error)

	// List yields every key with the prefix that is held or waited for, in no
	// order, each at least once if it stayed so during the whole listing. It
	// pages through the store and never blocks it. After an error it ends.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Force takes the key from whoever holds it, tells that client, and passes
	// the key on as Release does. It reports whether anyone held it.
	Force(ctx context.Context, key string) (bool, error)

	// Leave ends the session and everything that Join started. Keys still held
	// expire by their TTL. Later calls are answered with [ErrClosed].
	Leave(ctx context.Context) error
}

// An AcquireRequest asks for one key, for one owner.
type AcquireRequest struct {
	Key   string
	Owner string // this acquisition's secret identity

	TTL      time.Duration // of the holding, if the reply grants it
	GrantTTL time.Duration // of the holding, if an [EventGrant] grants it
	Liveness time.Duration // drop from the queue if not heard of for so long

	Wait       bool  // join the queue if the key can't be had now
	QueueLimit int   // refuse to join a queue of this length, unless with a Ticket; 0: no limit
	Ticket     int64 // the place in the queue that an earlier reply gave; 0: none yet

	// WatchContention asks for [EventContended] once someone else queues behind
	// the holding that this request leads to.
	WatchContention bool

	// WatchWanted asks for [EventWanted] each time that someone else asks in vain
	// for the holding that this request leads to. Only for stores with
	// Features.Wanted; all requests of one owner ask alike.
	WatchWanted bool

	Holder string // description for people
}

// An AcquireStatus is what a store answers to an [AcquireRequest].
type AcquireStatus int

// The answers to an acquire request.
const (
	_       AcquireStatus = iota
	Granted               // the owner holds the key, and its TTL was set by this very call
	Waiting               // the owner is in the queue
	Held                  // someone else holds the key or is ahead, and Wait was not asked for
	Full                  // the queue is at its limit
	Gone                  // this owner was withdrawn by an earlier Release; it will never be granted
)

// An AcquireReply answers an [AcquireRequest].
type AcquireReply struct {
	Status AcquireStatus
	Grant         // if Granted
	Holder string // if Held, where known: the description of the holder
	Token  int64  // if Held, where known: the holder's token
	Told   bool   // if Held: the holder was sent [EventWanted], and may give the key back

	Remaining time.Duration // if Waiting or Held: of the holder's TTL; negative if unknown
	Rank      int           // if Waiting: how many are ahead in the queue
	Ticket    int64         // if Waiting: to be sent with the next request of this owner
	Mark      int64         // if Waiting: grants with a token up to this one are older than this reply
	// Recheck, if Waiting and not zero, is how soon to ask again because no
	// message can be counted on. Zero: the caller's own timers will do.
	Recheck time.Duration
	// Watched, if Granted or Waiting, says that WatchWanted was asked for and that,
	// as things stand, messages to this client come through.
	Watched bool

	Waiters int // if Granted or Held: how many are queued

	// TTL, if Granted and not zero, is what the TTL counts for, from the sending
	// of the request on, where that is less than what was asked for.
	TTL time.Duration

	Err error
}

// A Grant is a key given to an owner.
type Grant struct {
	First int64 // the fencing token; 0 from a store without tokens
	// Spare counts further tokens that the store has set aside after First and
	// will give to nobody else.
	Spare int64
	// SparePerMicrosecond promises that, besides Spare, one more token is free
	// for each microsecond since the grant: the store's own numbers rise with
	// its clock at least so fast.
	SparePerMicrosecond bool
}

// A RenewRequest extends one holding.
type RenewRequest struct {
	Key             string
	Owner           string
	TTL             time.Duration
	Token           int64  // the last token used; the store's next one is larger
	WatchContention bool   // as in AcquireRequest, from now on; false changes nothing
	Holder          string // description for people, should the store have lost it
}

// A RenewReply answers a [RenewRequest]. Err is nil if the TTL was set by this
// very call, [ErrExpired] if nobody holds the key, [ErrStolen] if another owner
// does.
type RenewReply struct {
	Waiters int           // how many are queued
	TTL     time.Duration // as in [AcquireReply]
	Err     error
}

// A ReleaseRequest ends one owner's holding or waiting.
type ReleaseRequest struct {
	Key   string
	Owner string
	Token int64 // the last token used, if held; the store's next one is larger

	// Keep holds the key back for so long before it is given to anyone. Nobody
	// can renew it meanwhile; Inspect shows it as held, and Force ends that.
	Keep time.Duration
	// Uncertain says that an earlier request of this owner has had no reply, and
	// may still take effect. The store remembers for a while that the owner is
	// gone, so that a late request can't bring it back.
	Uncertain bool
	// First says that no release of this owner was ever sent, that all its renewals
	// have been answered, and that its holding is trusted now. A store whose servers may forget something
	// (a failover) can tell by it that a holding that it finds has not ended
	// elsewhere. It may be ignored.
	First bool
	// Requeue, if not nil, puts this client at the tail of the queue in the
	// same step, under the request's new owner id. If it is not to wait, which is
	// asked only of stores with Features.Wanted, it gets the key if that can be had
	// now.
	Requeue *AcquireRequest
}

// A ReleaseReply answers a [ReleaseRequest].
type ReleaseReply struct {
	WasHeld bool          // the owner held the key until now
	Requeue *AcquireReply // the answer to Requeue, if that was asked
	Err     error
}

// An EventKind says what an [Event] is about.
type EventKind int

// The kinds of event.
const (
	_ EventKind = iota
	// EventGrant: the waiter Owner was granted its key, for GrantTTL. Only stores
	// with tokens send it, for its token tells how old it is.
	EventGrant
	// EventWake: the waiter Owner had better ask again.
	EventWake
	// EventContended: someone queued behind the holder Owner.
	EventContended
	// EventWanted: someone asked in vain for what Owner holds: was refused, or
	// queued as the first, or is the first in the queue and asked again. So a
	// message that is lost is repeated with that one's next heartbeat.
	EventWanted
	// EventForced: the key was taken from Owner.
	EventForced
	// EventGap: events may have been lost; every waiter had better ask again.
	EventGap
	// EventDeaf: events don't come through any more. [EventGap] says when they do
	// again.
	EventDeaf
	// EventLost: the holding of Owner is over, because of Err.
	EventLost
)

// An Event is what a store tells a client unasked.
type Event struct {
	Kind  EventKind
	Owner string
	// For EventGrant:
	Grant    Grant
	GrantTTL time.Duration // as asked for when the waiter queued
	Waiters  int           // how many are queued behind it
	// For EventLost: [ErrExpired], with the circumstances.
	Err error
	// For EventGap and EventDeaf: whether they are about the keys of one
	// [Session.Lane] only, and which; else they are about all.
	OneLane bool
	Lane    int
}

// Info describes a key.
type Info struct {
	Key       string
	Held      bool
	Holder    string        // the holder's description of itself
	Token     int64         // the holder's fencing token, as last written to the store
	Remaining time.Duration // of the holder's TTL; negative if unknown
	Waiters   int           // how many clients are queued
	Queue     []WaiterInfo  // the first few of them, in order; nil from List
}

// WaiterInfo describes one queued client.
type WaiterInfo struct {
	Holder string        // its description of itself
	Age    time.Duration // since it queued
}
