// SPDX-License-Identifier: Apache-2.0

// Package springsql shares locks with Java: it keeps them in the table INT_LOCK of Spring
// Integration's JdbcLockRegistry, in PostgreSQL, MariaDB or MySQL (written for it, never
// tried on it), on the application's own pool.
//
//	if err := springsql.Migrate(ctx, springsql.Postgres(db)); err != nil { // once, or by your own tool
//		return err
//	}
//	store, err := springsql.New(ctx, springsql.Postgres(db))
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	locks, err := asynclock.New(store, asynclock.WithTTL(springsql.DefaultTTL), asynclock.WithReentry(true))
//
// docs/stores/spring.md says with which releases of Java, and how to migrate. docs/stores/sql.md says which
// rights it takes and what a lock costs. Where no Java service has to take part, use package
// sqlstore: Java's table has room neither for a queue nor for notifications.
//
// # Guarantees
//
// A key has at most one holder at a time, in both languages, as long as the server keeps what
// it acknowledged and
//
//   - the clocks of all clients agree, to well within the tenth of a TTL that a lease
//     ends before its key is given away. A client whose clock is ahead by more than what
//     is left of a lock steals it, in Java as in Go. The store measures how far its
//     machine's clock and the server's differ at least, and logs a warning
//     ([WithSkewWarning]);
//   - no peer is of the other [SpringVersion]. [New] refuses tables that show that one may
//     be;
//   - Java services run in the time zone UTC (-Duser.timezone=UTC), unless docs/stores/spring.md
//     says otherwise of their releases.
//
// Tokens rise through tenures of Java, which has none. The row of a key that no Go client has
// used for a day is forgotten. Its tokens then go on by the server's clock.
//
// None of this survives a failover to a replica that lacks the last commits, except that
// tokens rise where its clock is not behind.
//
// # Where it runs
//
// All work on locks is done by routines in the database, which the migration makes. A
// request, of any number of keys, is one statement, one round trip and one transaction.
// Deadlocks and serialization failures are tried again, with growing pauses. Waiters poll.
//
// # Reading the code
//
// All decisions are made in the routines: schema/postgres.sql has them with their reasons,
// and schema/mysql.sql says the same for MySQL. Package store/sqlstore/internal/sqlconn calls them, and
// session.go says for what. table.go is how Java's table is looked at first, and check.go how it is examined later.
package springsql
