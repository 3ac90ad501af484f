// SPDX-License-Identifier: Apache-2.0

// Package fence has what all fences share. A fence stands at a resource, remembers the largest
// fencing token that it was shown, and refuses smaller ones. So a holder that was paused past its
// TTL can't write after the next holder.
//
// A lock alone can't do that: a process may be stopped between the check of its lease and its write.
// The check must be one atomic step with the write, at the resource. Choose the fence that does this
// for your resource:
//
//   - [github.com/asynclock/asynclock-go/fence/fencesql]: transactions of database/sql, in
//     PostgreSQL, MariaDB and SQLite.
//   - [github.com/asynclock/asynclock-go/fence/fencepgx]: transactions of pgx.
//   - [github.com/asynclock/asynclock-go/fence/fenceredis]: commands in Redis, sent by rueidis or
//     go-redis.
//   - [Gate]: the memory or the files of one process.
//   - [github.com/asynclock/asynclock-go/fence/fencehttp]: takes the token to a service. The service
//     needs one of the fences above; the header alone refuses nothing.
//   - [Admit]: the rule itself, for fences of your own.
//
// # The rule
//
// A fence is about one key and one resource. Tokens of two keys say nothing about each other, and
// neither do those of one key in two lock stores. A resource that is written under two keys has two
// fences; a write under both shows both tokens ([Holders]). A resource that two lock stores protect under one
// name needs two resource names.
//
// An equal token is let in: one lease writes as often as it likes. A smaller one is refused with
// [ErrStale]. A fence asks neither the lock's store nor a clock, so it does not know whether the
// lease has ended. It knows only whether a later lease has been here.
//
// Every writer has to show its token. A fence can't stop a write that goes around it.
package fence
