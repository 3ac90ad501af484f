// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"context"

	"github.com/asynclock/asynclock-go/store/sqlstore"
	"github.com/asynclock/asynclock-go/store/sqlstore/springsql"
)

var sqlOptions = map[string]func(string) (sqlstore.Option, error){
	"prefix":        text(sqlstore.WithPrefix),
	"poll_interval": duration(sqlstore.WithPollInterval),
	"notifications": choice(map[string]sqlstore.Option{"off": sqlstore.WithoutNotifications()}),
}

var springSQLOptions = map[string]func(string) (springsql.Option, error){
	"prefix":         text(springsql.WithPrefix),
	"region":         text(springsql.WithRegion),
	"poll_interval":  duration(springsql.WithPollInterval),
	"repository_ttl": duration(springsql.WithRepositoryTTL),
	"spring_version": choice(map[string]springsql.Option{
		"6": springsql.WithSpringVersion(springsql.Spring6), "7": springsql.WithSpringVersion(springsql.Spring7),
	}),
}

func openSQL(ctx context.Context, l location, s settings) (*Store, error) {
	opts, err := options(l, sqlOptions)
	if err != nil {
		return nil, err
	}
	opts = append(opts, logging(s, sqlstore.WithLogger, sqlstore.WithoutLogger)...)
	db, err := openDatabase(ctx, l)
	if err != nil {
		return nil, err
	}
	st, err := sqlstore.New(ctx, db.Database, opts...)
	if err != nil {
		db.close()
		return nil, refusal(err)
	}
	return &Store{st, []func(){st.Close, db.close}}, nil
}

func migrateSQL(ctx context.Context, l location) error {
	return migrate(ctx, l, sqlOptions, sqlstore.Migrate)
}

func openSpringSQL(ctx context.Context, l location, s settings) (*Store, error) {
	opts, err := options(l, springSQLOptions)
	if err != nil {
		return nil, err
	}
	opts = append(opts, logging(s, springsql.WithLogger, springsql.WithoutLogger)...)
	db, err := openDatabase(ctx, l)
	if err != nil {
		return nil, err
	}
	st, err := springsql.New(ctx, db.Database, opts...)
	if err != nil {
		db.close()
		return nil, refusal(err)
	}
	return &Store{st, []func(){st.Close, db.close}}, nil
}

func migrateSpringSQL(ctx context.Context, l location) error {
	return migrate(ctx, l, springSQLOptions, springsql.Migrate)
}

// migrate migrates the database by a store's function.
func migrate[O any](ctx context.Context, l location, table map[string]func(string) (O, error), by func(context.Context, sqlstore.Database, ...O) error) error {
	opts, err := options(l, table)
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
