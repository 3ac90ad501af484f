// SPDX-License-Identifier: Apache-2.0

// Package zkstore keeps locks in ZooKeeper, in the nodes of Curator's
// InterProcessMutex and of Spring Integration's ZookeeperLockRegistry. A Go
// service with this store and a Java service with either of these exclude each
// other, and queue together.
//
//	// In Java: new ZookeeperLockRegistry(curatorFramework)
//	store, err := zkstore.Open([]string{"zk1:2181", "zk2:2181", "zk3:2181"})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	locks, err := asynclock.New(store)
//
// The Java key "order/42" is the Go key "order/42": the path of a lock is the
// root, a slash and the key as it is. Keys that ZooKeeper's paths can't have
// (control characters, an empty segment, characters beyond Unicode's first plane),
// which Java refuses, are spelled differently. Refused with asynclock.ErrBadKey are
// keys that would be taken for a waiter of the key above them ("a/lock-0000000001"),
// or for one that is spelled differently. docs/stores/zookeeper.md says when to
// choose ZooKeeper, and how the two languages differ.
//
// # Guarantees
//
// Exclusion survives the loss of servers, as long as a majority of them keeps what
// it acknowledged: every node is created by the whole ensemble, and the one with
// the smallest number has the key. Tokens rise likewise, without a clock having
// any part in it: they are made of the zxid that created the node. Waiters are
// served in the order of their nodes, in both languages.
//
// A lease ends before ZooKeeper can give its key to another. Its node belongs to a
// session, which the server ends when it has not heard of the client for the
// negotiated timeout; trust is counted from what the leader is known to have heard
// last, not from what some server has answered. It rests on clocks that run at
// rates within a hundredth of each other, in both languages, and on [WithTickTime].
//
// # What is different from a store with TTLs
//
//   - One session serves all keys of a [Store], and renewing them costs one small
//     write for all, ten times in a session timeout. When the session ends, all
//     leases do.
//   - A TTL longer than the session timeout counts only as long as the session is
//     alive: a lease that can't be renewed ends with the session. A TTL that is
//     shorter is refused with asynclock.ErrBadOption, unless [WithShortTTLs]. That
//     goes for the TTL that asynclock.WithMaxHold implies, too.
//   - asynclock.WithMinHold is kept by the process. If that ends, the key is free
//     when its session is.
//   - What remains of a holder's TTL is not known to others.
//   - Handoffs inside a client are bounded by tokens: after 4095 of them the key
//     goes through ZooKeeper once.
//   - A client that closes with leases held leaves them to their TTL, and a Store
//     that is closed meanwhile leaves its session to expire.
//
// # Rights
//
// A user needs read, create and delete below the root, and read on the root.
// Java peers create nodes that everybody may change, unless told otherwise; with
// [WithDigest] or [WithACL] both sides have to agree. Whoever may delete nodes may
// take every key.
//
// # Reading the code
//
// lock node.go is what an owner has in a lock, from its node to its end; acquire.go,
// renew.go and release.go are what is asked of it. view.go reads a lock's nodes as
// Curator does, pulse.go and line.go keep the session.
package zkstore
