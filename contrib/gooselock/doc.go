// SPDX-License-Identifier: Apache-2.0

// Package gooselock lets goose v3 migrate a database from one process at a time. Each process of a service may
// migrate when it starts; one of them does, and the others wait and find nothing to do:
//
//	locker, err := gooselock.New(locks, "migrate:orders")
//	…
//	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations, goose.WithLocker(locker))
//	…
//	_, err = provider.Up(ctx)
//
// goose's own locks are the database's. Those of PostgreSQL belong to a session, and behind a pooler in
// transaction mode they stay in a session of another. The lock of this package needs nothing of the database.
//
// # What happens if
//
//   - another process has the key: Lock waits as long as the context of Up lasts, or as long as WithWait
//     says. Then Up fails, with an error that matches [asynclock.ErrHeld].
//   - the store can't be reached: Up fails, after a third of the TTL at the latest. No migration has begun.
//   - the lease is lost during the migrations: Up goes on, and its error matches [asynclock.ErrLost]. The next
//     section says how to stop it.
//   - Unlock fails: the key is free after the TTL at the latest. That is no error of Up, because the lease
//     covered the migrations. It is one if the store says that the lease was lost.
//   - the process dies: the key is free after the TTL. The database decides what became of a migration.
//
// # To stop at a loss
//
// goose can't be told of a loss by a locker, but it obeys its context. So call it under a lease of the same
// key, and make the locker with [asynclock.WithReentry], so that it joins that lease. Then goose begins no other
// migration when the lease is lost:
//
//	locker, err := gooselock.New(locks, "migrate:orders", asynclock.WithReentry(true))
//	…
//	err = locks.WithLock(ctx, "migrate:orders", func(ctx context.Context, _ *asynclock.Lease) error {
//		_, err := provider.Up(ctx)
//		return err
//	})
package gooselock
