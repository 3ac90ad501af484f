// SPDX-License-Identifier: Apache-2.0

// Package redisstore keeps locks in Redis or Valkey: standalone, Sentinel or
// Cluster, version 6.2 or newer.
//
//	store, err := redisstore.Open(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	locks, err := asynclock.New(store)
//
// Taking a key is one command, giving it back is one command, and both do all
// there is to do: an acquire that finds the key held joins its queue, and a
// release hands the key to the first waiter and sends it one message. Each is a
// Lua script, and so atomic. Waiters are served in the order in which their
// clients came, and nobody is woken in vain. If this client gave the key to the only waiter last
// time and the store had nothing to do with the server for a millisecond, an EXISTS goes
// ahead of the release, so that the server writes to the waiter first.
//
// # Guarantees
//
// A key has at most one holder at a time, tokens rise with each holder, and
// nothing is kept for ever: every Redis key has a TTL. This holds as long as the
// server's clock is not set forward, and it keeps what it acknowledged or is
// restarted or failed over when it does not.
//
// A server that was started or promoted may have forgotten holdings. So it makes
// nobody a holder until these have ended by their TTL: for 15 s at least, see
// [WithFailoverGrace]. Meanwhile holders go on and write back what is missing, waiters
// wait, and a TryLock fails with asynclock.ErrUnreachable. A fresh server can't be
// told from one that has lost its data: its first lock waits until it is 15 s old.
// Tests that start servers want [WithoutFailoverGrace].
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
// Each client subscribes to one channel of its own, its inbox. Where that does not
// work, because an ACL forbids it or a proxy drops it, the store logs so once and
// waiters ask again every few dozen milliseconds instead. A holding that was
// taken meanwhile stays without messages: its client learns by the next renewal
// that the key was taken by force, or that somebody waits for it.
//
// In a Cluster whose servers have sharded pub-sub a client has an inbox per
// bucket of keys that it uses, of 256; each costs two goroutines and a message to
// itself every 5 to 10 s. Messages then stay with one node and its replicas,
// where others go to all nodes.
//
// While a Cluster moves a slot, its servers refuse each script that names a key
// that is there and one that is not, and most locks lack some of their five.
// Renewals go on, because they get by with the holder's record; leases outlive a
// move, however long it takes. To take or inspect a key of that slot, to queue for
// it or to give it back may fail with asynclock.ErrUnreachable until it is over.
//
// # Rights
//
// An ACL user needs, for the prefix asynclock (docs/security.md says who can do
// what with less and with more):
//
//	~asynclock:{* &asynclock:* +evalsha +eval +hello +ping +get +set +exists +del
//	+pexpire +pttl +time +zadd +zcard +zrange +zrank +zrem +zremrangebyscore
//	+zscore +hget +hset +hdel +hlen +publish +subscribe +unsubscribe
//	+pubsub|numsub +info|replication +info|server
//
// In a Cluster, besides: +cluster|slots +cluster|shards +asking +spublish
// +ssubscribe +sunsubscribe +pubsub|shardnumsub. To list keys: +scan, and in a
// Cluster +role. Behind Sentinel: +role, without which no client connects.
//
// On Redis 6.2 leave out what it does not know: +spublish, +ssubscribe and
// +sunsubscribe.
//
// # Reading the code
//
// All decisions are made in the scripts: lock.lua says what is stored and who is
// next, then come acquire.lua, release.lua (its common case is release_fast.lua) and
// renew.lua, and epoch.lua for what a server may have forgotten. fragments.go has the
// formats that they share, and puts them in place. session.go and call.go send them;
// inbox.go and channel.go hear.
package redisstore
