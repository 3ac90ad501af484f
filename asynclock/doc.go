// SPDX-License-Identifier: Apache-2.0

// Package asynclock gives out locks that several processes share.
//
// A [Client] takes keys in a store. What a caller gets is a [Lease] of the key:
//
//	locks, err := asynclock.New(store)
//	...
//	err = locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
//		return orders.Save(ctx, order, lease.Token())
//	})
//
// WithLock waits while ctx lasts, or as long as [WithWait] says. [Client.Lock] and [Client.TryLock] return the
// lease itself, which [Lease.Unlock] ends.
//
// A lease belongs to no goroutine. Any goroutine may use it, pass it on or unlock it. The
// watchdog, one goroutine per client, renews it until then. A pending acquisition is a
// channel to select on: [Client.LockChan], or [Client.LockEach] for many keys.
//
// [Client.RLock] takes a key together with other readers.
// [Client.Semaphore] makes a key that is taken in parts: permits.
// [Client.LockAll] takes several keys together. Such calls never deadlock each other.
// [Lease.SetNote] leaves a note beside the key. Package once uses it to run a job once in an
// interval, and package elect to say who leads. [Client.Inspect] and [Client.List] say who has a key.
//
// # What is guaranteed
//
// At most one lease of a key is trusted at any time, in all processes that use the same
// store; or only leases of readers, or of as many permits as there are. A lease is trusted until its deadline. The client counts the TTL from before it sent
// the request, on its own clock. The store counts from later, so the lease ends before the
// store can give the key to another client, however slow the network is.
// [Lease.Context] is cancelled at the deadline. [Lease.Valid] checks it without relying on
// any goroutine having run.
//
// This assumes that clocks run within 1 % of each other, that the store's clock does not
// jump forward, that the store does not lose acknowledged writes, and that nobody uses
// [Client.ForceUnlock]. If an assumption fails, two leases may overlap. A virtual machine
// that its hypervisor stops fails the first one: all its clocks may stand still.
//
// Fencing tokens protect you even then. They increase from lease to lease ([Lease.Token]),
// so a resource that refuses smaller tokens refuses the stale holder. The same check
// protects you from a process that was paused between [Lease.Valid] and its write, which no
// lock service can prevent. docs/design.md#tokens has the two cases in which tokens may not
// increase.
//
// # What is not
//
// A lock is not a transaction: the work of a holder stays done after its lease was lost. The
// store decides the order of clients. Inside a client, a bounded number of local waiters
// may get the key before an earlier client. A store that fails over may lose locks with its
// last writes; the documentation of each store says when.
//
// # Errors
//
// Test errors with [errors.Is]: see [ErrHeld] and those below it. After an error of Lock
// the caller does not hold the key. If a lost request has taken the key, the client
// releases it in the background.
//
// # Testing
//
// Package store/memstore keeps locks in memory with the same semantics. It works inside
// testing/synctest bubbles, where a TTL of a minute passes in no time. Make the store and the client inside
// the bubble, and close the client before the bubble ends. Package
// asynclocktest is such a store behind a network that fails as the test says. Its clients warn of forgotten leases
// ([WithLeakDetection]).
//
// # Reading the code
//
// docs/design.md has the words, the rules (W1 to W10 for waiting, and so on) and where to look. Package
// internal/machine decides what happens to a key, and its comment says where to look. This package is the
// shell around it:
//
//	a key's state, a step          keystate.go, host.go: what the machine has of the client
//	requests to the store          calls.go; renew.go, overdue.go; release.go; outage.go
//	how long a request may take    limit.go
//	how long a caller waits        wait.go
//	notifications of the store     events.go
//	contexts, channels             watch.go, weakchan.go
//	re-entry                       reentry.go
//	keys kept for the client       retain.go
//	forgotten leases               leak.go, callsite.go
//	counts, and what hooks hear    count.go; hooked.go, asked.go, hold.go
//	several keys                   gatherer.go, gathertry.go: taking them; multilease.go: the lease, its loss and
//	                               renewal; multiunlock.go; multifuture.go, gathering.go, gatheringturns.go,
//	                               gatheringend.go: futures
//	the calls of users             client.go, lock.go, trylock.go, future.go, each.go, withlock.go,
//	                               rlock.go, downgrade.go, semaphore.go, lockall.go,
//	                               lease.go, unlock.go, note.go, announce.go, observe.go, admin.go, close.go,
//	                               stats.go, hooks.go
//	errors                         errors.go
//	their options                  options.go, clientoptions.go, settings.go
package asynclock
