// SPDX-License-Identifier: Apache-2.0

// Package fencesql is a fence in a database, for transactions of database/sql. It works with leases of
// every lock store. At the program's start, for [SQLite], [Postgres] or [MySQL]:
//
//	fences, err := fencesql.New(fencesql.SQLite)
//	...
//	err = fences.Migrate(ctx, db) // makes the table of fences
//
// In each transaction, before it writes:
//
//	if err := fences.Guard(ctx, tx, lease); err != nil {
//		return err // ErrStale: a later holder has committed; roll back
//	}
//
// The fence of a key is a row of the table asynclock_fence. Guard raises the token in it, inside the
// transaction that writes the data. So the check and the write are one atomic step, and the row's lock
// lets the transactions of two holders run only one after the other. The one of the earlier holder is
// first, or it is refused.
//
// The table is that of package sqlstore. A program that uses [Fence.Guard] and sqlstore's Guard in one
// database has the same fences in both, unless it chooses other tables. [Fence] says what isolation
// levels change.
package fencesql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/internal/sqlfence"
)

// DefaultTable is the table of fences, unless [WithTable] names another.
const DefaultTable = sqlfence.DefaultTable

// A Dialect is a kind of database.
type Dialect int

// The databases that have transactions for a fence.
const (
	Postgres Dialect = iota + 1 // PostgreSQL
	MySQL                       // MariaDB 10.6 or newer; MySQL is untested
	SQLite                      // SQLite 3.35 or newer
)

var dialects = map[Dialect]*sqlfence.Dialect{
	Postgres: &sqlfence.Postgres,
	MySQL:    &sqlfence.MySQL,
	SQLite:   &sqlfence.SQLite,
}

// A Fence refuses transactions that come too late. It has no state of its own: all Fences with the
// same table and the same resource are one. It is safe for concurrent use.
//
// At READ COMMITTED, a later holder's Guard waits for the end of an earlier holder's transaction. At
// REPEATABLE READ and above, PostgreSQL answers with SQLSTATE 40001 instead if the later transaction
// began to read before the earlier commit. Recent MariaDB may answer with error 1020 there. At any level it may answer with 1213 to those who wait
// for a transaction that has made a key's row, and is rolled back. SQLite has
// one writer at a time, and answers SQLITE_BUSY where its busy timeout is too short or its snapshot too
// old. After each of these, roll back and repeat the transaction.
//
// The row of a key stays for good. It must not be deleted: without it, a holder that overslept could
// write.
type Fence struct {
	dialect *sqlfence.Dialect
	place   sqlfence.Place
}

// New makes a Fence. It sends nothing. Its error is [fence.ErrInvalidOption].
func New(d Dialect, opts ...Option) (*Fence, error) {
	f := &Fence{dialects[d], sqlfence.Place{Package: "fencesql", Table: DefaultTable}}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: nil", fence.ErrInvalidOption)
		}
		o(&f.place)
	}
	if f.dialect == nil {
		return nil, fmt.Errorf("%w: dialect %d", fence.ErrInvalidOption, d)
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
//
// Name resources if two lock stores have keys of the same name, whose tokens have nothing to do with
// each other. Or name them if transactions that write to different things need not wait for each
// other. A transaction that writes to several resources shows its token to the fence of each.
func WithResource(name string) Option { return func(p *sqlfence.Place) { p.Resource = name } }

// Guard makes everything that a transaction writes depend on the token of h, which may be a lease.
// Call it before the first write, or before the first read if the write depends on what was read.
// Roll back if it fails.
//
// The error is a [*fence.StaleError] if a later holder of the key has committed a transaction under
// this fence. Until this transaction ends, Guard of all other holders of the key waits, and so does
// another one of the same holder. A token that was rolled back was never shown.
//
// Guard does not check that the lease is still held. Other errors: those of [fence.Check],
// [fence.ErrInvalidOption] if tx or ctx is nil, and the driver's, inside another error.
func (f *Fence) Guard(ctx context.Context, tx *sql.Tx, h fence.Holder) error {
	if f == nil || f.dialect == nil {
		return errZero
	}
	return f.place.Guard(h, f.dialect.Raise(ctx, tx, f.place.Table))
}

// GuardAll is [Fence.Guard] for all keys of h, which may be a lease of several keys, as of asynclock's LockAll:
//
//	err := locks.WithLockAll(ctx, keys, func(ctx context.Context, accounts *asynclock.MultiLease) error {
//		...
//		if err := fences.GuardAll(ctx, tx, accounts); err != nil {
//
// It takes a round trip for each key, in the order of [fence.NewStamps]. So transactions never deadlock by it, in whatever order
// they list their keys. They may if they call Guard or GuardAll twice, or have locked other rows before. The error
// is a [*fence.StaleError] if a later holder of any key has committed. Other errors: those of Guard and of NewStamps.
func (f *Fence) GuardAll(ctx context.Context, tx *sql.Tx, h fence.Holders) error {
	if f == nil || f.dialect == nil {
		return errZero
	}
	return f.place.GuardAll(h, f.dialect.Raise(ctx, tx, f.place.Table))
}

// Migrate makes the table, unless it is there. Programs may call it at each start, several at once.
// A user who may not make tables may call it where the table is there.
func (f *Fence) Migrate(ctx context.Context, db *sql.DB) error {
	if f == nil || f.dialect == nil {
		return errZero
	}
	if db == nil {
		return fmt.Errorf("%w: no database", fence.ErrInvalidOption)
	}
	return f.dialect.Migrate(ctx, f.place, func(ctx context.Context, statement string) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	})
}

// Schema returns the statement that makes the table, for those who make tables by a tool of their own.
func (f *Fence) Schema() (string, error) {
	if f == nil || f.dialect == nil {
		return "", errZero
	}
	return f.dialect.Schema(f.place.Table), nil
}

var errZero = fmt.Errorf("%w: a Fence comes from New", fence.ErrInvalidOption)
