// SPDX-License-Identifier: Apache-2.0

// Package sqlstore keeps locks in the database that you already have: PostgreSQL,
// MariaDB or MySQL (written for it, never tried on it), on the application's own pool.
//
//	if err := sqlstore.Migrate(ctx, sqlstore.Postgres(db)); err != nil { // once, or by your own tool
//		return err
//	}
//	store, err := sqlstore.New(ctx, sqlstore.Postgres(db))
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	locks, err := asynclock.New(store)
//
// docs/sql.md says what to set up, which rights it takes and what a lock costs.
//
// # Which tables
//
// [New] uses tables of its own, [NewSpring] the table INT_LOCK of Java's
// JdbcLockRegistry. Use the former unless a Java service has to take part: only there
// a key goes by one clock, the server's; has a queue, so that waiters are served in
// their order and the key passes to the next of them in the statement that releases it;
// and is told of by messages. Java's table has room for none of that, and whoever looks
// at it compares it with the clock of its own machine.
//
// # Guarantees
//
// With tables of its own, what package asynclock promises holds as long as the server
// keeps what it acknowledged and its clock does not jump forward. Tokens are the
// larger of the clock in microseconds and one more than the last token (of the key, or of
// all keys whose rows were forgotten), and don't go back as long as the server keeps what it
// acknowledged. One that was restored from a backup, or a replica without the last commits,
// goes on with its clock: if that is behind the lost server's, a token may come again.
//
// With Java's table a key has at most one holder at a time, in both languages, as long
// as in addition
//
//   - the clocks of all clients agree, to well within the tenth of a TTL that a lease
//     ends before its key is given away. A client whose clock is ahead by more than what
//     is left of a lock steals it, in Java as in Go. The store measures how far its
//     machine's clock and the server's differ at least, and logs a warning
//     ([WithSkewWarning]);
//   - no peer is of the other [Generation]. [NewSpring] refuses tables that show that
//     one may be;
//   - Java services run in the time zone UTC (-Duser.timezone=UTC), unless docs/spring.md
//     says otherwise of their releases.
//
// Neither survives a failover to a replica that lacks the last commits, except by tokens
// where its clock is not behind.
//
// # Where it runs
//
// What happens to locks happens in routines in the database, which the migration makes:
// a request, of any number of keys, is one statement, one round trip and one
// transaction. Deadlocks and serialization failures are tried again, with growing
// pauses. A request waits for a locked row only if it is alone in its statement, and as
// long as its context lasts.
//
// # Messages
//
// On PostgreSQL each client has a connection of its own beside the pool, on which it
// listens (LISTEN) to a channel with a secret name. When it fails, waiters poll until it
// is back; no wait is without a timer in any case. A pooler that shares connections
// between transactions loses messages, which is noticed: connect to the database itself,
// or use [WithPolling]. On MySQL, and with Java's table, waiters poll.
//
// # Writes that come too late
//
// [Store.Guard] ties a transaction of the application's own to a lease's token.
// [LockTx] is another kind of lock, for those who want one that is part of a
// transaction.
//
// # Reading the code
//
// All decisions are made in the routines: schema/native_postgres.sql has them with
// their reasons, the other files of schema say the same for the other kinds of tables.
// session.go and call.go call them; inbox.go, or where there are no messages
// polling.go, is how waiters learn that a key is theirs.
package sqlstore
