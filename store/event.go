// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// An EventKind says what an [Event] is about.
type EventKind int

// The kinds of event.
const (
	_ EventKind = iota
	// EventGrant: the waiter Owner was granted its key, for GrantTTL. Only stores with
	// tokens send it, because the token tells how old the grant is. Others send EventWake.
	EventGrant
	// EventWake: the waiter Owner should ask again. If Owner has Permits, their limit has changed, and it
	// should renew them. The reply says how many there are.
	EventWake
	// EventQueued: another client queued behind the holder Owner.
	EventQueued
	// EventRequested: another client requested the key that Owner holds. It was refused,
	// or queued as the first, or is the first in the queue and asked again. So if the
	// notification is lost, the next heartbeat of that client repeats it.
	EventRequested
	// EventForced: a message says that the key was taken from Owner by force. It ends nothing, because others may be
	// able to forge it: the client asks the store, by a renewal. A store that has seen it for itself sends EventLost.
	EventForced
	// EventResync: events may have been lost; each waiter should ask again.
	EventResync
	// EventDisconnected: events don't arrive until the next [EventResync].
	EventDisconnected
	// EventLost: the holding of Owner has ended; Err says why. The client believes it, so it must not come from a
	// message that others can forge.
	EventLost
	// EventAnnounced: Announcement was made about Key; see [ObserveSession].
	EventAnnounced
	// EventObserving: announcements of Key come through from now on. Those until now may have been lost, so the
	// client should look.
	EventObserving
	// EventUnobserved: announcements of Key may not come through until the next [EventObserving].
	EventUnobserved
)

// An Event is a notification from a store to a client.
type Event struct {
	Kind  EventKind
	Owner string
	// For EventGrant:
	Grant    Grant
	GrantTTL time.Duration // as in the request that queued
	Waiters  int           // how many are queued behind the owner
	// For EventLost: [ErrForced], or [ErrExpired] with the circumstances.
	Err error
	// For EventResync and EventDisconnected: OneLane says that the event is about the
	// keys of one [Session.Lane], which is Lane. Otherwise it is about all keys.
	OneLane bool
	Lane    int
	// For EventAnnounced, EventObserving and EventUnobserved: the key.
	Key string
	// For EventAnnounced: what was announced. Nobody changes it.
	Announcement *Announcement
}
