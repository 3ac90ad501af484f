// SPDX-License-Identifier: Apache-2.0

// Package springredis keeps locks where Java services keep theirs: in the Redis
// keys of Spring Integration's RedisLockRegistry. A Go service with this store and
// a Java service with a registry of the same registry key exclude each other, and
// wake each other.
//
//	// In Java: new RedisLockRegistry(connectionFactory, "shop")
//	store, err := springredis.Open(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}, "shop")
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	locks, err := asynclock.New(store, asynclock.WithTTL(springredis.DefaultTTL), asynclock.WithReentry(true))
//
// The Java key "order:42" is the Go key "order:42". docs/stores/spring.md says which releases
// are safe peers, what to set on the Java side, how to migrate, and what each method of the
// Java API is called here. Without a Java peer, use store/redisstore: it does more with less.
//
// # Guarantees
//
// A key has at most one holder at a time, in both languages: one atomic
// compare-and-set decides, each acquisition has a value of its own, and only the
// holder's own value is released or extended. This holds as long as the server
// keeps what it acknowledged and its clock is not set forward, and as long as
// every Java peer keeps to it: releases before 6.0.7 and 6.1.3 delete what is not
// theirs.
//
// # What is not guaranteed
//
//   - Order. Java's waiters are in no queue, so nobody is: the first request after a release
//     wins. There is no handoff to the next waiter, no queue limit (asynclock.WithQueueLimit
//     has no effect), and Inspect knows no waiters.
//   - Notifying Java's holders of a loss. They learn of it when they unlock.
//   - One holder after a restart or a failover. Unlike store/redisstore, this store has no
//     grace, because Java would not wait for it. A server that was restarted without data, or
//     a replica that missed a holding, gives the key to the next request at once. An old
//     holder in Go learns of this by its next renewal, within a third of its TTL. An old
//     holder in Java learns of it when it unlocks. Until then only tokens keep two holders in
//     Go apart.
//   - Locks that survive eviction: use maxmemory-policy noeviction.
//
// # Tokens
//
// Java has no fencing tokens; this store has. Each lease of a Go client carries one that is
// larger than all before it. The last one is kept in a counter beside the lock, which Java
// neither reads nor writes, and the next is the larger of counter+1 and the server's clock in
// microseconds. So tokens rise through tenures of Java as well: a Go holder after Java has a
// larger token than the Go holder before Java. A resource that checks tokens refuses a Go
// client that overslept a Java holder.
//
// Tokens can't do more than that. Java's writes carry no token, so a resource can't refuse a
// Java holder that overslept. Nor can it refuse a Go client that overslept into a tenure of
// Java, until the next Go lease has shown its token. The counter is kept for a day after its
// last use. After that, and when the data was lost, the clock alone makes tokens rise, as
// long as it is not set back. There is one more exception. After a force, tokens may be ahead
// of the clock until the TTL of a holder in Go would have ended, 24 h at most. If the data is
// lost in that time, they go back to the clock.
//
// # Waiting
//
// With [SpinLock] a waiter polls every 100 ms. With [PubSubLock] the message of a release
// wakes it, from old Java releases and from new ones. It also polls once a second, and when
// the TTL that it knows has run out. The reason is that messages get lost, and that some
// holders send none: those that crash, and those in mode SPIN_LOCK in Java. Where
// subscriptions don't work, it polls every 100 ms.
//
// This store announces a release in either mode, on the channels of both generations. Nobody
// announces a key that is held back (asynclock.WithMinHold) or that expires. Java waiters in
// mode PUB_SUB_LOCK may then sleep for as long as their registry's TTL.
//
// # Rights
//
// An ACL user needs, for the registry key shop:
//
//	~shop:* ~asynclock.spring:{*}:shop:* &shop-channel &shop-channel:* +evalsha +eval
//	+hello +ping +get +set +del +unlink +delex +pexpire +pttl +time +zadd +zcard
//	+zscore +zremrangebyscore +publish +psubscribe
//
// where servers before 8.4 know no DELEX. To list keys: +scan, and in a Cluster
// +role, besides what a Cluster's clients need: +cluster|slots +cluster|shards
// +asking. Behind Sentinel: +role, without which no client connects. In the patterns
// of keys and of channels, glob characters of the registry key are escaped by a backslash.
//
// So the users of two registries can't touch each other's locks, tokens and messages. There are
// two exceptions. One is a registry key with another's in front, as shop:eu has shop's: shop's
// user may do anything to its locks. The other is a key with "}:shop:" in it, as of bank:a}:shop:b:
// shop's user may write its side keys, and so its tokens. SCAN shows the names of all keys.
//
// A missing right is ErrDenied from the first call that needs it. Without those for an extension
// of the TTL no lock is taken. Without +unlink and +delex, DEL deletes. Without the right to
// publish, nobody learns of a release. Without +zadd a Release that follows an error fails with
// ErrDenied, and has freed the key.
//
// # Reading the code
//
// shared.lua says what is stored beside Java's keys; acquire.lua, renew.lua and
// release.lua decide. waiting.go, inbox.go and message.go are how waiters learn of a
// release. check.go says whether the servers are fit for locks, by internal/redischeck.
package springredis
