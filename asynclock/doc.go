// SPDX-License-Identifier: Apache-2.0

// Package asynclock gives out locks that several processes share.
//
// A [Client] takes keys in a [Store]; each holding of a key is a [Lease]:
//
//	locks, err := asynclock.New(store)
//	...
//	err = locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
//		return orders.Save(ctx, order, lease.Token())
//	})
//
// A lease belongs to no goroutine. It may be passed on and unlocked anywhere;
// the watchdog, one goroutine per client, renews it until then. A pending
// acquisition is a channel, so that it can be selected on: [Client.LockChan].
//
// # What is guaranteed
//
// At most one lease of a key is trusted at any time, in all processes that use
// the same store. A lease's context ends, and [Lease.Valid] turns false, before
// the store may give the key to anyone else, whatever the network does: the
// client counts the TTL from before it asked, on a clock of its own.
//
// This holds as long as clocks run at rates that differ by less than a
// hundredth, the store's own clock does not jump forward, the store does not
// lose what it has acknowledged, and nobody uses [Client.ForceUnlock].
//
// Tokens of one key strictly increase from lease to lease ([Lease.Token]), also
// when these assumptions fail, unless the store's clock is set back just when it
// loses its data or a holder dies, or it loses its data after a ForceUnlock, before the
// forced holder's TTL has run out. A client that has not noticed that its holding was
// lost may pass the key on with smaller tokens than the new holder's. A resource that refuses a token smaller than
// the largest it has seen is therefore safe even from a process that was paused
// between asking [Lease.Valid] and writing. Only such a check makes a lock safe
// against every pause: no lock service can do it alone.
//
// # What is not
//
// A lock is not a transaction: what a holder did before it lost its lease stays
// done. Order among clients is the store's, and bounded handoff inside a client
// may let a later local waiter pass an earlier remote one. A store that fails
// over may lose locks with its last writes; each store's documentation says
// when.
//
// # Errors
//
// They are values to be tested with [errors.Is]: see [ErrHeld] and what follows
// it. An error of Lock never means that the key is held after all; what a lost
// request may have taken is given back in the background.
//
// # Testing
//
// Package store/memstore keeps locks in memory with the same semantics and works
// inside testing/synctest bubbles, where a TTL of a minute passes in no time.
// Package asynclocktest is such a store behind a network that fails as the test
// says.
//
// # Reading the code
//
// docs/design.md comes first: it has the words and the rules. Then keystate.go, what a
// client knows of a key, of which the two halves are contend.go, waiting for it, and
// holding.go, having it. Package store is what the client asks of a store.
package asynclock
