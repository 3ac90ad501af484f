// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"context"

	"github.com/asynclock/asynclock-go/store/sqlstore"
	"github.com/asynclock/asynclock-go/store/sqlstore/springsql"
)

var sqlOptions = table[sqlstore.Option]{
	"prefix":        text(sqlstore.WithPrefix),
	"poll_interval": duration(sqlstore.WithPollInterval),
	"notifications": choice(map[string]sqlstore.Option{"off": sqlstore.WithoutNotifications()}),
}

var springSQLOptions = table[springsql.Option]{
	"prefix":         text(springsql.WithPrefix),
	"region":         text(springsql.WithRegion),
	"poll_interval":  duration(springsql.WithPollInterval),
	"repository_ttl": duration(springsql.WithRepositoryTTL),
	"spring_version": choice(map[string]springsql.Option{
		"6": springsql.WithSpringVersion(springsql.Spring6), "7": springsql.WithSpringVersion(springsql.Spring7),
	}),
}

func openSQL(ctx context.Context, l location, s settings) (*Store, error) {
	return openTables(ctx, l, sqlOptions, logging(s, sqlstore.WithLogger, sqlstore.WithoutLogger), sqlstore.New)
}

func openSpringSQL(ctx context.Context, l location, s settings) (*Store, error) {
	return openTables(ctx, l, springSQLOptions, logging(s, springsql.WithLogger, springsql.WithoutLogger), springsql.New)
}

func migrateSQL(ctx context.Context, l location) error {
	return migrate(ctx, l, sqlOptions, sqlstore.Migrate)
}

func migrateSpringSQL(ctx context.Context, l location) error {
	return migrate(ctx, l, springSQLOptions, springsql.Migrate)
}

// openTables opens a store in a database by its own function.
func openTables[O any, S closable](ctx context.Context, l location, t table[O], more []O, by func(context.Context, sqlstore.Database, ...O) (S, error)) (*Store, error) {
	opts, err := options(l, t)
	if err != nil {
		return nil, err
	}
	db, err := openDatabase(ctx, l)
	if err != nil {
		return nil, err
	}
	st, err := opened(by(ctx, db.Database, append(opts, more...)...))
	if err != nil {
		db.close()
		return nil, refusal(err)
	}
	st.closes = append(st.closes, db.close)
	return st, nil
}

// migrate migrates the database by a store's function.
func migrate[O any](ctx context.Context, l location, t table[O], by func(context.Context, sqlstore.Database, ...O) error) error {
	opts, err := options(l, t)
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, l)
	if err != nil {
		return err
	}
	defer db.close()
	return refusal(by(ctx, db.Database, opts...))
}
