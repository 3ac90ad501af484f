// SPDX-License-Identifier: Apache-2.0

// Package fencepgx is package fencesql for transactions of pgx. Both have the same fences if they have
// the same table, and what fencesql says of isolation levels is true here, too.
package fencepgx

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/internal/sqlfence"
)

// DefaultTable is the table of fences, unless [WithTable] names another.
const DefaultTable = sqlfence.DefaultTable

// A Fence refuses transactions that come too late. It has no state of its own: all Fences with the
// same table and the same resource are one. It is safe for concurrent use.
type Fence struct{ place sqlfence.Place }

// New makes a Fence. It sends nothing. Its error is [fence.ErrInvalidOption].
func New(opts ...Option) (*Fence, error) {
	f := &Fence{sqlfence.Place{Package: "fencepgx", Table: DefaultTable}}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: nil", fence.ErrInvalidOption)
		}
		o(&f.place)
	}
	return f, f.place.Check()
}

// An Option changes a [Fence].
type Option func(*sqlfence.Place)

// WithTable names the table, if need be after a schema and a dot. Each of these two is a letter of
// ASCII or an underscore, and at most 62 more of these or digits. Default [DefaultTable].
func WithTable(name string) Option { return func(p *sqlfence.Place) { p.Table = name } }

// WithResource names what the writes go to, in at most 64 bytes of UTF-8. Fences of different
// resources know nothing of each other. The default is no name: the database as a whole.
func WithResource(name string) Option { return func(p *sqlfence.Place) { p.Resource = name } }

// Guard makes everything that a transaction writes depend on the token of h, which may be a lease.
// Call it before the first write, or before the first read if the write depends on what was read.
// Roll back if it fails.
//
// The error is a [*fence.StaleError] if a later holder of the key has committed a transaction under
// this fence. Until this transaction ends, Guard of all other holders of the key waits. Guard does not
// check that the lease is still held. Other errors: those of [fence.Check], [fence.ErrInvalidOption] if
// tx or ctx is nil, and pgx's, inside another error.
func (f *Fence) Guard(ctx context.Context, tx pgx.Tx, h fence.Holder) error {
	if f == nil || f.place.Table == "" || ctx == nil || tx == nil {
		return errNothing
	}
	return f.place.Guard(h, f.raise(ctx, tx))
}

// GuardAll is [Fence.Guard] for all keys of h, which may be a lease of several keys (asynclock.MultiLease). fencesql says
// more of it.
func (f *Fence) GuardAll(ctx context.Context, tx pgx.Tx, h fence.Holders) error {
	if f == nil || f.place.Table == "" || ctx == nil || tx == nil {
		return errNothing
	}
	return f.place.GuardAll(h, f.raise(ctx, tx))
}

// raise returns how a transaction raises a fence.
func (f *Fence) raise(ctx context.Context, tx pgx.Tx) func(row string, token int64) (int64, error) {
	return func(row string, token int64) (newest int64, err error) {
		err = tx.QueryRow(ctx, sqlfence.Postgres.Statement(f.place.Table), row, token).Scan(&newest)
		return newest, err
	}
}

// A DB is a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx.
type DB interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// Migrate makes the table, unless it is there. Programs may call it at each start, several at once. A
// user who may not make tables may call it where the table is there. A transaction goes on behind it; a table
// that it has made is there for others once it commits. fencesql has the statement, for those who make tables
// by a tool of their own.
func (f *Fence) Migrate(ctx context.Context, db DB) error {
	if f == nil || f.place.Table == "" || ctx == nil || db == nil {
		return errNothing
	}
	return sqlfence.Postgres.Migrate(ctx, f.place, func(ctx context.Context, statement string) error {
		_, err := db.Exec(ctx, statement)
		return err
	})
}

var errNothing = fmt.Errorf("%w: ctx, tx or db is nil, or the Fence is not of New", fence.ErrInvalidOption)
