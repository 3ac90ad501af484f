// SPDX-License-Identifier: Apache-2.0

// Package zkstore keeps locks in ZooKeeper, in the nodes of Curator's InterProcessMutex and of
// Spring Integration's ZookeeperLockRegistry. A Go service with this store and a Java service with
// either of these exclude each other, and queue together.
//
//	// In Java: new ZookeeperLockRegistry(curatorFramework)
//	store, err := zkstore.Open([]string{"zk1:2181", "zk2:2181", "zk3:2181"})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	locks, err := asynclock.New(store)
//
// The Java key "order/42" is the Go key "order/42": the path of a lock is the root, a slash and the
// unchanged key. Some keys are not valid in ZooKeeper's paths: those with control characters, an
// empty segment, or characters beyond Unicode's first plane. Java refuses them; this store spells
// them differently. Two kinds of keys are refused with asynclock.ErrInvalidKey: keys that look like a
// waiter of the key above them ("a/lock-0000000001"), and keys that look like the different
// spelling of another key. docs/stores/zookeeper.md says when to choose ZooKeeper, and how the two
// languages differ.
//
// Keys that [WithReadWriteKeys] names have the nodes of Curator's InterProcessReadWriteLock instead, and
// readers. A candidate of Curator's LeaderSelector is a holder or a waiter like others, and its
// participant id is its description.
//
// # Guarantees
//
// Exclusion survives the loss of servers, as long as a majority of them keeps what it acknowledged.
// The whole ensemble creates every node, and the node with the smallest number has the key. Tokens
// rise in the same way and depend on no clock, because they are made of the zxid that created the
// node. Waiters are served in the order of their nodes, in both languages.
//
// A lease ends before ZooKeeper can give its key to another owner. Its node belongs to a session.
// The server ends the session if it receives nothing from the client for the negotiated timeout.
// Trust is counted from the last request that the leader certainly knows of, not from the last
// answer of any server. This assumes that clocks run at rates within a hundredth of each other, in
// both languages, and that [WithTickTime] is right.
//
// # Differences from a store with TTLs
//
//   - One session serves all keys of a [Store]. Renewing them costs one small write for all of
//     them, ten times in a session timeout. When the session ends, all leases end.
//   - A TTL longer than the session timeout counts only as long as the session is alive: a lease
//     that can't be renewed ends with the session. A shorter TTL is refused with
//     asynclock.ErrInvalidOption, unless [WithShortTTLs] is set. This includes the TTL that
//     asynclock.WithMaxHold implies.
//   - The process itself implements asynclock.WithMinHold. If the process ends, the key is free
//     when its session ends.
//   - Other clients do not know the remaining TTL of a holder.
//   - Tokens limit the handoffs inside a client: after 4095 handoffs the key goes through ZooKeeper
//     once.
//   - Readers of different clients that hold a key together have different tokens. Each is between
//     those of the writers before and after.
//   - A client that closes while it holds leases leaves them to their TTL. If the Store is closed
//     meanwhile, it leaves its session to expire.
//
// # Rights
//
// A user needs read, create and delete below the root, and read and create on the root. By default, Java peers
// create nodes that everybody may change. With [WithDigest] or [WithACL] both sides have to agree.
// A user that may delete nodes may take every key.
//
// # Reading the code
//
// locknode.go has what an owner has in a lock, from its node to its end. acquire.go, renew.go and
// release.go have the requests about it, ends.go has why a holding has ended, and force.go how it is
// taken. nodename.go and view.go read a lock's nodes as Curator does. rest.go lets a writer go on as a
// reader. health.go and conn.go keep the session. check.go examines the servers.
package zkstore
