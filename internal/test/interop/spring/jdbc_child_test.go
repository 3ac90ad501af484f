// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"context"
	"database/sql"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/springsql"
)

// A sqlPart is how a store of Go's for a table is made, here or in a child.
type sqlPart struct {
	Kind, URL, Prefix, Region string
	RepositoryTTL             time.Duration
}

func (b table) sqlPart() *sqlPart {
	return &sqlPart{Kind: b.kind.name, URL: b.url, Prefix: b.prefix, Region: b.region, RepositoryTTL: b.ttl}
}

// part is what a child is to do that holds a key of this table.
func (b table) part(key string) part {
	return part{SQL: b.sqlPart(), Key: key, TTL: b.lease}
}

func (p *sqlPart) open(ctx context.Context, db *sql.DB, options ...springsql.Option) (*springsql.Store, error) {
	options = append([]springsql.Option{
		springsql.WithPrefix(p.Prefix), springsql.WithRegion(p.Region), springsql.WithRepositoryTTL(p.RepositoryTTL),
	}, options...)
	return springsql.New(ctx, kinds[p.Kind].database(db), options...)
}

// store is that of a child.
func (p *sqlPart) store() store.Store {
	db, err := sql.Open(kinds[p.Kind].driver, p.URL)
	if err != nil {
		panic(err)
	}
	store, err := p.open(context.Background(), db)
	if err != nil {
		panic(err)
	}
	return store
}
