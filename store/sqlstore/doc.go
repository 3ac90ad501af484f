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
// Package springsql keeps locks in the table of Spring Integration's JdbcLockRegistry. Use it
// where a Java service has to take part, and this one otherwise. Only this store uses a
// single clock, the server's. Only this store has a queue: waiters are served in their order,
// and the statement that releases a key passes it to the next waiter.
//
// Owners may also share a key, as readers or by permits ([store.Share]).
//
// # Guarantees
//
// The promises of package asynclock hold as long as the server keeps what it acknowledged and
// its clock does not jump forward. Tokens are the larger of the clock in microseconds and one
// more than the last token (of the key, or of all keys whose rows were forgotten). They don't
// go back as long as the server keeps what it acknowledged. A server that was restored from a
// backup goes on with its own clock, and so does a replica without the last commits. If that
// clock is behind the lost server's, a token may come again.
//
// # Where it runs
//
// All work on locks is done by routines in the database, which the migration makes. A
// request, of any number of keys, is one statement, one round trip and one transaction.
// Deadlocks and serialization failures are tried again, with growing pauses. A request waits
// for a locked row only if it is alone in its statement, and for 20 ms. Then its connection is free
// for others, and the request comes again.
//
// # Notifications
//
// On PostgreSQL each client has a connection of its own beside the pool, on which it listens
// (LISTEN) to a channel with a secret name. If this connection fails, waiters poll until it
// is back. Every wait also has a timer. A pooler that shares connections between transactions
// loses notifications. The store notices that and polls. Connect to the database itself, or
// use [WithoutNotifications]. On MySQL waiters poll.
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
// and schema/mysql.sql says the same for MySQL. Package store/sqlstore/internal/sqlconn calls them, and
// session.go says for what. inbox.go is how waiters are notified that a key is theirs. check.go, here and there, examines
// the server.
package sqlstore
