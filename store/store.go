// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"iter"
)

// A Store is where locks live. It opens a session for each client, and serves any number
// of clients.
type Store interface {
	// Open connects one client. The id names the client in the store while the session
	// lasts, and is unique. The store calls notify, from any goroutine, with
	// notifications for this client; notify never blocks. Notifications are hints: they
	// may be lost, delayed, repeated or reordered. The exception is [EventLost].
	//
	// Open fails with [ErrInvalidOption] for a store that no function of its package has made.
	Open(id string, notify func(Event)) (Session, error)

	// Features says what this store can do. It is constant.
	Features() Features
}

// Features says what a store offers besides exclusion, which every store offers.
type Features struct {
	// Name says in a word what the store is in, such as redis. Metrics have it. It may be empty.
	Name string
	// Tokens: each grant carries a fencing token that is larger than any earlier one of
	// the key. Otherwise tokens are zero.
	Tokens bool
	// FIFO: waiters queue in the store, which grants keys in the order of the queue.
	// Otherwise they compete, and the first to ask after a release wins.
	FIFO bool
	// Sessions: the server tracks connections, not TTLs. The store's code in the client
	// ends a holding that is not renewed. Then
	//   - nobody else knows what remains of a TTL,
	//   - an expired holding is passed on at once,
	//   - a waiter that was removed comes back at the tail of the queue,
	//   - a grant has the tokens Token to Token+Reserved and no others. They are smaller
	//     than all later ones even if they are not written back,
	//   - readers that hold a key together may have different Fences,
	//   - a waiter that requests another Mode than before comes back at the tail.
	Sessions bool
	// Retention: a holder can ask to be notified of each refused request
	// ([EventRequested]), and a release can request the key anew without waiting.
	// Otherwise no key is retained.
	Retention bool
	// Shared: owners may share a key.
	Shared bool
	// Permits: owners may take permits of a key.
	Permits bool
	// Limits: each session is a [LimitSession]. The store also has Permits.
	Limits bool
	// Notes: a key may have a note, and sessions are of type [NoteSession]. Such a store has Tokens.
	Notes bool
	// Announcements: each session is an [ObserveSession]. The store also has Notes.
	Announcements bool
}

// A Session is one client's connection to a [Store].
//
// Acquire, Renew and Release take a batch of requests of one [Session.Lane]. The reply at
// index i answers the request at index i, and is independent of the others. The methods
// return when ctx ends, if not before.
//
// Each request is safe to repeat. Its owner id names one acquisition and is never used
// again. If a reply is lost, the client sends the request again.
//
// A reply's Err is one of these:
//   - [ErrUnreachable]: nothing happened; worth trying again.
//   - [ErrOutcomeUnknown], or the error of ctx: the request may have taken effect; worth
//     trying again.
//   - any other error: final for this request.
type Session interface {
	// Lane says which requests share a route to the server. Requests of one lane may
	// wait for each other. Requests of different lanes never do. Lanes are small
	// numbers from 0.
	Lane(key string) int

	// Acquire takes each key or joins its queue. Without Wait it does not join. Sent
	// again for the same owner, it is the waiter's heartbeat, and it finds a grant whose
	// notification was lost.
	Acquire(ctx context.Context, batch []AcquireRequest) []AcquireReply

	// Renew extends holdings. It never shortens one. It never brings a lost one back,
	// except if the store knows that it may have forgotten the holding, and has granted
	// the key to nobody since.
	Renew(ctx context.Context, batch []RenewRequest) []RenewReply

	// Release ends what each owner has: its holding, which passes to the next waiter in
	// the same step, or its place in the queue.
	Release(ctx context.Context, batch []ReleaseRequest) []ReleaseReply

	// Inspect says who holds the key and who waits for it.
	Inspect(ctx context.Context, key string) (Info, error)

	// List yields each key with the prefix that is held or waited for, in no order. A
	// key that stays so during the whole listing is yielded at least once. List reads
	// the store page by page and never blocks it. An error with an Info that has a Key is about that key
	// alone, and List goes on. After any other error it ends.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Force takes the key from its holder, notifies that client, and passes the key on
	// as Release does. It reports whether anyone held the key.
	//
	// The token names the holding that is meant: the one for which Inspect shows that
	// token at the moment of the removal. The comparison and the removal are one step. If
	// the key is held and the token is another, nothing changes, and the error is an
	// [OtherHolderError]. The token zero means whoever holds the key.
	//
	// So Force with a token can be repeated: the holder after has a larger token. Force
	// with zero can't.
	Force(ctx context.Context, key string, token int64) (bool, error)

	// Close ends the session and everything that Open started. Keys that are still held
	// expire by their TTL. Later calls return [ErrClosed].
	Close(ctx context.Context) error
}
