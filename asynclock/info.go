// SPDX-License-Identifier: Apache-2.0

package asynclock

import "github.com/asynclock/asynclock-go/store"

// A Store is where clients keep their locks: see the packages below store. Its methods are for clients, not for their users.
type Store = store.Store

// Info describes a key, as [Client.Inspect] and [Client.List] find it: whether it is Held, by which Holder, with which
// Token, for how long the TTL is Remaining, and how many are Waiters. [store.Info] has all fields.
type Info = store.Info

// A Mode says how much of its key a lease has: see [Lease.Mode].
type Mode = store.Mode

// The modes of a [Lease].
const (
	Exclusive = store.Exclusive // of Lock: all of it
	Shared    = store.Shared    // of RLock: a part, beside any number of other readers
	Permits   = store.Permits   // of a Semaphore: some of its permits
)

// WaiterInfo describes one queued client.
type WaiterInfo = store.WaiterInfo
