// SPDX-License-Identifier: Apache-2.0

// Package goredisstore opens a redisstore with the options of go-redis, or of a client of it. So a program whose Redis
// client is go-redis has one configuration for its data and its locks.
//
//	options := &redis.Options{Addr: "127.0.0.1:6379", Password: password}
//	store, err := goredisstore.Open(options)
//
// The store has connections of its own, by rueidis, and is what redisstore.Open returns. It has the
// same guarantees, speed and cost. Package redisstore describes them. [New] connects by go-redis instead, with the
// same guarantees, and says what it costs.
//
// # What becomes of each field
//
// Each field of the options is carried, has no meaning for locks, or is refused:
//
//   - Carried: addresses, user and password, providers of credentials, the database, TLS, the dialer,
//     the client's name, and whatever else says where the server is and who asks.
//   - Without meaning: pools, buffers, retries and caches. The store's connections are pipelined, its
//     requests end with their context, and the client repeats them where that is safe.
//   - Refused: what would be lost without a word. These are hooks, limiters, reads from replicas, and
//     clients that only look like a Cluster. The error is an [*OptionError], which names the field.
//
// docs/stores/goredis.md lists all fields. A field that this package does not know, because go-redis
// is newer, is refused if it is set.
//
// Hooks that were added to a client with AddHook, and handlers of push notifications that were
// registered with it, are not in its options. The store does not call them.
//
// # Reading the code
//
// fields.go decides about each field. values.go refuses values that can't be carried. translate.go,
// dial.go and credentials.go make the options of rueidis.
//
// new.go and driver.go are for a store by go-redis. own.go makes its clients, and conns.go knows their connections. command.go
// sends scripts. receive.go has the subscriptions, and feed.go the connection that they share.
package goredisstore
