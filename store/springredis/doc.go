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
//	locks, err := asynclock.New(store, asynclock.WithTTL(springredis.DefaultTTL))
//
// The Java key "order:42" is the Go key "order:42". docs/stores/spring.md says which
// releases are safe peers, what to set on the Java side, how to migrate, and what
// each method of the Java API is called here. Where no Java peer is, use
// store/redisstore: it does more with less.
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
//   - Order. Java's waiters are in no queue, so nobody is: whoever asks first after
//     a release wins. There is no handoff to the next waiter, no queue limit
//     (asynclock.WithQueueLimit has no effect), and Inspect knows no waiters.
//   - That Java's holders are told of a loss. They learn it when they unlock.
//   - One holder after a restart or a failover. There is no grace here, as there is in
//     store/redisstore: Java would not wait for it. A server that was restarted without
//     data, or a replica that had not heard of a holding, gives the key to whoever asks
//     next, at once. The old holder in Go learns of it at its next renewal, within a
//     third of its TTL, in Java when it unlocks; until then only tokens keep two
//     holders in Go apart.
//   - Eviction is no different: use maxmemory-policy noeviction.
//
// # Tokens
//
// Java has no fencing tokens; this store has. Each lease of a Go client carries
// one that is larger than all before it. The last one is kept in a counter beside
// the lock, which Java neither reads nor writes, and the next is the larger of
// counter+1 and the server's clock in microseconds. So tokens rise through
// tenures of Java as well: whoever holds the key after Java has a larger token
// than whoever held it before, and a resource that checks tokens refuses a Go
// client that overslept a Java holder.
//
// It can't do more than that. Java's writes carry no token, so a resource can
// refuse neither a Java holder that overslept, nor, until the next Go lease has
// shown its token, a Go client that overslept into a tenure of Java. The counter
// is kept for a day after its last use; beyond that, and when the data was lost,
// the clock alone makes tokens rise, as long as it is not set back. There is one more
// exception: after a force, tokens may be ahead of the clock for as long as the TTL of a
// holder in Go had to run, 24 h at most, and if the data is lost meanwhile they go back
// to the clock.
//
// # Waiting
//
// With [SpinLock] a waiter asks every 100 ms. With [PubSubLock] it is woken by the
// message of a release, of old Java releases and of new ones, and asks besides
// once a second, and when the TTL that it was told has run out: holders that
// crash, or that are in mode SPIN_LOCK in Java, send no message, and messages get
// lost. Where subscriptions don't work, it asks every 100 ms.
//
// A release by this store is announced in either mode, on the channels of both
// generations. A key that is kept back (asynclock.WithMinHold) or that expires is
// announced by nobody, and Java waiters in mode PUB_SUB_LOCK may then sleep for as
// long as their registry's TTL.
//
// # Rights
//
// An ACL user needs, for the registry key shop:
//
//	~shop:* ~asynclock.spring:* &shop-channel &shop-channel:* +evalsha +eval
//	+hello +ping +get +set +del +unlink +delex +pexpire +pttl +time +zadd +zcard
//	+zscore +zremrangebyscore +publish +psubscribe +punsubscribe
//
// where servers before 8.4 know no DELEX. To list keys: +scan, and in a Cluster
// +role, besides what a Cluster's clients need: +cluster|slots +cluster|shards
// +asking. Behind Sentinel: +role, without which no client connects. In the patterns
// of the channels, glob characters of the registry key are escaped by a backslash.
//
// # Reading the code
//
// shared.lua says what is stored beside Java's keys; acquire.lua, renew.lua and
// release.lua decide. waiting.go, inbox.go and message.go are how waiters learn of a
// release.
package springredis
