// SPDX-License-Identifier: Apache-2.0

// Package migratelock lets golang-migrate v4 migrate a database from one process at a time. Each process of a
// service may migrate when it starts; one of them does, and the others wait and find nothing to do. The
// package wraps any driver of migrate:
//
//	driver, err := sqlite.WithInstance(db, &sqlite.Config{})
//	…
//	driver, err = migratelock.Wrap(driver, locks, "migrate:orders")
//	…
//	m, err := migrate.NewWithInstance("iofs", source, "sqlite", driver)
//	…
//	err = m.Up()
//
// # The database's own lock
//
// migrate's drivers take the lock of their database when they are made, in WithInstance and Open, while they look for
// the table of versions. Nobody can wrap them before. Afterwards, that lock is not used.
//
// In PostgreSQL it is an advisory lock, which belongs to a session, and a driver waits for it without an end. Behind a
// pooler in transaction mode it stays in a session of another, and the next driver hangs. So behind such a pooler open
// the database with [WithoutAdvisoryLocks]. If processes may start before the table of versions is there, make the driver
// under a lock of another key, because PostgreSQL may fail one of two that create it:
//
//	db := sql.OpenDB(migratelock.WithoutAdvisoryLocks(stdlib.GetConnector(*config)))
//	…
//	err = locks.WithLock(ctx, "migrate:orders:table", func(context.Context, *asynclock.Lease) (err error) {
//		driver, err = pgx.WithInstance(db, &pgx.Config{})
//		return err
//	})
//
// Or let migrations connect past the pooler. In MySQL, NoLock in the driver's Config does the same. In SQLite the own lock
// is for one process only.
//
// # What happens if
//
//   - another process has the key: Lock waits for ten seconds, or as long as WithWait says. Then m.Up fails, with
//     an error that matches database.ErrLocked and [asynclock.ErrHeld].
//   - the store can't be reached: m.Up fails, after a third of the TTL at the latest. No migration has begun.
//   - the lease is lost during a migration: the migration is finished and recorded, and no other one begins. m.Up
//     fails with an error that matches [asynclock.ErrLost]. Then make another Migrate, because this one
//     takes itself for locked.
//   - Unlock fails: the key is free after the TTL at the latest. That is no error of m.Up, because the lease
//     covered the migrations. It is one if the store says that the lease was lost.
//   - a driver panics, and the program goes on: migrate does not unlock, and the watchdog renews the lease. Close
//     unlocks, so defer it.
//   - the process dies: the key is free after the TTL. The database stays dirty if a migration had begun, as
//     always with migrate.
//
// migrate gives up a Lock after Migrate.LockTimeout, 15 s by default, and cannot stop it. So WithWait has to be
// shorter. Close ends a Lock that still waits, and unlocks.
//
// migrate passes no context on. So don't call it under a lease of the same key: Lock would wait for that lease.
package migratelock
