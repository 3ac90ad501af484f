// SPDX-License-Identifier: Apache-2.0

// Package sqlstore keeps locks in the database that you already have.
//
// [NewSpring] shares the table INT_LOCK with Java's JdbcLockRegistry of Spring
// Integration: a Go service and a Java service with the same table and region exclude
// each other.
//
//	err := sqlstore.MigrateSpring(ctx, sqlstore.Postgres(db))
//	...
//	store, err := sqlstore.NewSpring(ctx, sqlstore.Postgres(db))
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	locks, err := asynclock.New(store, asynclock.WithTTL(sqlstore.DefaultSpringTTL))
package sqlstore
