// SPDX-License-Identifier: Apache-2.0

// Package asynclockgo is the map of the module; it holds no API.
//
// The lock is in [github.com/asynclock/asynclock-go/asynclock]: a Client takes
// keys, each holding is a Lease that any goroutine may use, pass on and unlock,
// and a pending acquisition is a channel to select on.
//
// Where locks live is a Store:
//
//   - [github.com/asynclock/asynclock-go/store/redisstore]: Redis 6.2 and newer,
//     standalone, Sentinel and Cluster.
//   - [github.com/asynclock/asynclock-go/store/springredis]: the keys of Spring
//     Integration's RedisLockRegistry, shared with Java.
//   - [github.com/asynclock/asynclock-go/store/sqlstore]: PostgreSQL, MariaDB and
//     MySQL (written for it, never tried on it).
//   - [github.com/asynclock/asynclock-go/store/springsql]: the table of Spring
//     Integration's JdbcLockRegistry, shared with Java.
//   - [github.com/asynclock/asynclock-go/store/zkstore]: ZooKeeper, in the nodes of
//     Curator's InterProcessMutex and Spring Integration's ZookeeperLockRegistry.
//   - [github.com/asynclock/asynclock-go/store/memstore]: this process only; for
//     tests and for programs that run once.
//   - [github.com/asynclock/asynclock-go/store/storetest]: the suite that every
//     store has to pass, yours too.
//   - [github.com/asynclock/asynclock-go/asynclocktest]: a store in memory that
//     fails as a test says, for the tests of programs that use locks.
//
// Two packages do the work underneath and know nothing of locks:
// [github.com/asynclock/asynclock-go/watchdog] fires many timers from one
// goroutine, [github.com/asynclock/asynclock-go/pubsub] keeps one subscription
// alive and proves that it is. The command asynclock runs a program under a
// lock; docs/design.md says how the parts fit and why.
//
// The tests in this directory are the stories: what a user may count on, seen from
// outside, over every store. CONTRIBUTING.md says how all tests are layered.
package asynclockgo
