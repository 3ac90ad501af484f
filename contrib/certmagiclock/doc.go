// SPDX-License-Identifier: Apache-2.0

// Package certmagiclock locks certificates of certmagic, and so of Caddy, for any storage. Instances that
// share a storage also share its locks: one of them obtains or renews a certificate, and the others
// wait and then load it. Many storages have weak locks, or locks that stay when a process dies:
//
//	storage, err := certmagiclock.Wrap(storage, locks, "certmagic:")
//	…
//	certmagic.Default.Storage = storage
//
// All instances must lock in the same store, with the same prefix. The storage's own locks are not used.
//
// # Leases
//
// While an attempt lasts, the watchdog renews its lease. So RenewLockLease, which certmagic calls before each
// attempt, does not lengthen it: certmagic requests up to six hours and more, and the certificate of a
// process that died would be locked for as long. RenewLockLease asks the store whether the lease is still
// held. If it was lost, RenewLockLease takes the key anew, because certmagic repeats the attempt for thirty days
// and never calls Lock again.
//
// # What happens if
//
//   - another instance has the key: Lock waits while its context lasts, and TryLock returns false. Waiters
//     are served first come, first served, if the store has a queue.
//   - the store can't be reached: Lock and TryLock fail, after a third of the TTL at the latest. certmagic
//     tries again, as after an error of the issuer. Certificates that are there go on working.
//   - the lease is lost during an attempt: certmagic has no means of stopping it. At worst two instances obtain
//     a certificate, and the one stored last is used. The next attempt needs a lease again.
//   - Unlock fails: certmagic logs the error. The key is free after the TTL at the latest.
//   - the process dies: the key is free after the TTL.
package certmagiclock
