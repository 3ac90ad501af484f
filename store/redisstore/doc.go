// SPDX-License-Identifier: Apache-2.0

// Package redisstore keeps locks in Redis or Valkey: standalone, Sentinel or
// Cluster, version 6.2 or newer.
//
//	store, err := redisstore.OpenURL("redis://127.0.0.1:6379")
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	locks, err := asynclock.New(store)
//
// [Open] takes the options of rueidis instead of a URL. Package goredisstore takes those of go-redis.
//
// Taking a key is one command, and giving it back is one command. An acquire that finds the
// key held joins its queue. A release hands the key to the first waiter and sends it one
// message. Each is a Lua script, and so atomic. Waiters are served in the order in which
// their clients came, and nobody is woken in vain. Sometimes an EXISTS goes ahead of the
// release, so that the server writes to the waiter first. This happens if the client's last
// release of the key went to the only waiter, and the store has been idle for a millisecond.
//
// # Guarantees
//
// A key has at most one holder at a time, tokens rise with each holder, and nothing is kept
// for ever: every Redis key has a TTL, except a stored limit of permits. This holds as long as the server's clock is not set
// forward. It also requires that the server keeps what it acknowledged, or loses it only by a
// restart or a failover.
//
// A server that was started or promoted may have forgotten holdings. So it grants nothing
// until these have ended by their TTL: for 15 s at least, see [WithFailoverGrace]. An operator
// who knows that nothing was lost can end that, see [Store.EndGrace]. Meanwhile
// holders go on and write back what is missing, waiters wait, and a TryLock fails with
// an asynclock.GraceError. A fresh server can't be distinguished from one that has lost its
// data, so its first lock waits until it is some 16 s old. Tests that start servers should use
// [WithoutFailoverGrace].
//
// Tokens of new grants also rise after the data was lost, as long as the server's clock is
// not set back. A key that was taken by force is an exception. Its tokens may be ahead of the
// clock until the old holder's TTL would have ended, 24 h at most. If the data is lost in
// that time, they go back to the clock.
//
// # What is not guaranteed
//
//   - After FLUSHALL, and while an old primary goes on serving beside the new one,
//     there may be two holders until the first notices at its next renewal. A
//     resource that checks tokens is safe. docs/design.md says what else the guard
//     does not see.
//   - A maxmemory policy other than noeviction may evict locks. These keys have
//     TTLs, so the volatile policies evict them too.
//
// # Messages
//
// Each client subscribes to one channel of its own, its inbox. Where an ACL forbids that or a
// proxy drops it, the store logs so once, and waiters poll every few dozen milliseconds
// instead. A holding that was taken meanwhile stays without messages. Its client learns by
// the next renewal that the key was taken by force, or that somebody waits for it.
//
// In a Cluster whose servers have sharded pub-sub, a client has an inbox for each bucket of
// keys that it uses, 256 at most. Each inbox costs two goroutines and a message to itself
// every 5 to 10 s. Sharded messages stay with one node and its replicas. Other messages go to
// all nodes.
//
// While a Cluster moves a slot, its servers refuse scripts of which some Redis keys exist
// there and others don't. Most locks lack some of their Redis keys. Renewals need only
// the holder's record, so they go on, and leases outlive a move, however long it takes. Other
// requests for a key of that slot may fail with asynclock.ErrUnreachable until the move is
// over: to take it, to queue for it, to inspect it or to give it back.
//
// # Rights
//
// An ACL user needs, for the prefix asynclock (docs/security.md says who can do
// what with less and with more):
//
//	~asynclock:{* &asynclock:* +evalsha +eval +hello +ping +get +set +exists +del
//	+unlink +pexpire +pttl +time +zadd +zcard +zcount +zrange +zrank +zrem
//	+zscore +hget +hmget +hset +hdel +hlen +publish +subscribe
//	+pubsub|numsub +info|replication +info|server +info|memory
//
// In a Cluster, besides: +cluster|slots +cluster|shards +asking +spublish
// +ssubscribe +pubsub|shardnumsub. To list keys, and to end a grace before its time: +scan, and in a
// Cluster +role. Behind Sentinel: +role, without which no client connects.
//
// Redis 6.2 does not know +spublish and +ssubscribe: leave them out there.
//
// # Reading the code
//
// All decisions are made in the scripts: lock.lua says what is stored and who is
// next, then come acquire.lua, release.lua (its common case is release_fast.lua) and
// renew.lua, and epoch.lua for what a server may have forgotten. fragments.go has the
// formats that they share, and puts them in place. session.go and call.go send them, by
// internal/redisconn; inbox.go and channel.go receive notifications. check.go says whether the servers are fit for
// locks, by internal/redischeck. Package redisdriver is what
// all of it needs of a client library, and rueidis.go has that of rueidis. lazy.go has the one that dials later.
package redisstore
