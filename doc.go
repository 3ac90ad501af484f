// SPDX-License-Identifier: Apache-2.0

// Package asynclockgo is the map of the module; it has no API.
//
// Users of locks read one package and the store that they choose. docs/README.md lists the pages:
//
//   - [github.com/asynclock/asynclock-go/asynclock]: Client, Lease, options, errors. Its
//     package comment says which file decides what.
//   - [github.com/asynclock/asynclock-go/store/redisstore]: Redis 6.2 or newer and Valkey,
//     standalone, Sentinel and Cluster.
//   - [github.com/asynclock/asynclock-go/store/goredisstore]: the same, with the options or
//     the client of go-redis.
//   - [github.com/asynclock/asynclock-go/store/sqlstore]: PostgreSQL and MariaDB.
//   - [github.com/asynclock/asynclock-go/store/zkstore]: ZooKeeper, shared with Curator and
//     Spring Integration's ZookeeperLockRegistry.
//   - [github.com/asynclock/asynclock-go/store/springredis] and
//     [github.com/asynclock/asynclock-go/store/sqlstore/springsql]: shared with Spring Integration's
//     RedisLockRegistry and JdbcLockRegistry.
//   - [github.com/asynclock/asynclock-go/store/quorumstore]: a majority of several servers.
//   - [github.com/asynclock/asynclock-go/store/anystore]: any of these by a URL, except a majority.
//   - [github.com/asynclock/asynclock-go/store/memstore]: one process, for tests.
//   - [github.com/asynclock/asynclock-go/asynclocktest]: a store in memory that fails as a
//     test says, for tests of programs that use locks.
//   - [github.com/asynclock/asynclock-go/fence]: refuses writes of holders that overslept, with
//     fencesql, fencepgx, fenceredis and fencehttp below it. docs/fences.md says which to choose.
//   - [github.com/asynclock/asynclock-go/once]: a job that runs once in each interval, in one of many
//     processes.
//   - [github.com/asynclock/asynclock-go/elect]: a leader among many processes.
//   - [github.com/asynclock/asynclock-go/doctor]: whether a store is fit for locks, and why a key is waited for.
//   - [github.com/asynclock/asynclock-go/asynclockui]: a page that shows the locks live, for the admin pages of a service.
//   - [github.com/asynclock/asynclock-go/asynclockotel]: metrics and traces by OpenTelemetry. docs/observability.md
//   - contrib: adapters for gocron, robfig/cron, certmagic, goose, golang-migrate, River and asynq, each a
//     module of its own. docs/adapters.md says what each does.
//   - examples: complete programs to copy, a module of its own.
//   - cmd/asynclock: the command. It runs a program under a lock, shows and frees locks, and examines servers.
//
// Authors of a store read two:
//
//   - [github.com/asynclock/asynclock-go/store]: the contract.
//   - [github.com/asynclock/asynclock-go/store/storetest]: the suite that a store has to
//     pass. CONTRIBUTING.md, "Adding a store", has the steps, and what is required.
//
// Two packages know nothing of locks and import the standard library alone:
//
//   - [github.com/asynclock/asynclock-go/watchdog]: many timers on one goroutine, by a clock
//     that counts suspend.
//   - [github.com/asynclock/asynclock-go/pubsub]: one subscription, kept alive and proven.
//
// Where to look. More of it, and what to change together, is in docs/design.md:
//
//	who gets the key next, in a client      asynclock/internal/machine/exclusive.go: passToOne; cohort.go
//	who gets the key next, in Redis         store/redisstore/release.go: plan picks the script; release_fast.lua;
//	                                        lock.lua: choose; shares.lua: serve
//	how long a lease is trusted             asynclock/internal/machine/timing.go: trustUntil
//	where a lease learns that it is lost    asynclock/internal/machine/loss.go: tick, lose; the causes:
//	                                        asynclock/errors.go, from ErrLost to ErrNotRenewed
//	what happens when a holder dies         docs/design.md, "From Lock to loss"; for permits docs/internals/shares.md
//	how a key is shared                     store/share.go; asynclock/internal/machine/readers.go, permits.go, tenure.go;
//	                                        store/redisstore/shares.lua
//	how several keys are taken, and lost    asynclock/gatherer.go: gatherAll, dropLost; asynclock/multilease.go: end
//	what ends a wait                        asynclock/wait.go; asynclock/internal/machine/trouble.go: giveUp
//	what a force takes                      asynclock/admin.go; store/redisstore/force.lua
//	when a job has run in its interval      once/once.go: isDone; once/interval.go: startAt
//	when a term begins and ends             elect/term.go: beginTerm; elect/candidate.go: round
//	what a paused leader finds              docs/internals/notes.md, "A paused leader"
//	which writes come too late              fence/admit.go: Admit; internal/sqlfence; fence/fenceredis/fence.lua
//	how a call to Redis ends in time        internal/redisconn/call.go, line.go
//	what to change together                 docs/design.md, "To change this, also change"
//	code for a task                         docs/recipes.md
//	a complete program to copy              examples; examples/README.md lists them
//	whether a lock is right, and which      docs/choose.md; docs/faq.md
//	the way from another library            docs/migrate
//	how the parts fit, and why              docs/design.md
//	which command runs all tests            go run ./internal/test/testenv; CONTRIBUTING.md
//
// Tests have a folder of their own, internal/test: the stories that each store must pass
// (acceptance), the fault suite (chaos), Java (interop), the servers, and the mutants.
// asynclock_test.go, beside this file, lists the stores of this module that the stories run
// on. The other stores have such a list in their acceptance_test.go.
package asynclockgo
