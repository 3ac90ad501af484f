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
// docs/stores/sql.md says what to set up, which rights it takes and what a lock costs.
//
// Package springsql keeps locks in the table of Spring Integration's JdbcLockRegistry. Use
// it where a Java service has to take part, and this one otherwise. Only here a key goes by
// one clock, the server's. Only here it has a queue: waiters are served in their order, and
// the key passes to the next of them in the statement that releases it.
//
// # Guarantees
//
// The promises of package asynclock hold as long as the server keeps what it acknowledged and
// its clock does not jump forward. Tokens are the larger of the clock in microseconds and one
// more than the last token (of the key, or of all keys whose rows were forgotten). They don't
// go back as long as the server keeps what it acknowledged. One that was restored from a
// backup, or a replica without the last commits, goes on with its clock. If that is behind
// the lost server's, a token may come again.
//
// # Where it runs
//
// All work on locks is done by routines in the database, which the migration makes. A
// request, of any number of keys, is one statement, one round trip and one transaction.
// Deadlocks and serialization failures are tried again, with growing pauses. A request waits
// for a locked row only if it is alone in its statement, and as long as its context lasts.
//
// # Notifications
//
// On PostgreSQL each client has a connection of its own beside the pool, on which it
// listens (LISTEN) to a channel with a secret name. When it fails, waiters poll until it
// is back; no wait is without a timer in any case. A pooler that shares connections
// between transactions loses notifications, which is noticed: connect to the database
// itself, or use [WithoutNotifications]. On MySQL waiters poll.
//
// # Writes that come too late
//
// [Store.Guard] ties a transaction of the application's own to a lease's token.
// [LockTx] is another kind of lock, for those who want one that is part of a
// transaction.
//
// # Reading the code
//
// All decisions are made in the routines: schema/postgres.sql has them with their reasons,
// and schema/mysql.sql says the same for MySQL. Package internal/sqlconn calls them, and
// session.go says for what. inbox.go is how waiters are notified that a key is theirs.
package sqlstore
