// SPDX-License-Identifier: Apache-2.0

// Package sqlconn is what every store in a database does in the same way: how it calls
// routines, for whole batches; what it takes an error for; how waiters poll; how a
// migration runs; and how a transaction is guarded.
package sqlconn

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Config says what a store's tables and routines are called.
type Config struct {
	Package  string // of the store, for errors
	Prefix   string // of all names
	Routines string // what the names of the routines begin with
	Fence    string // the table of the tokens that have guarded a transaction
	Tables   Tables
}

// Tables are what a store knows of its own tables, and others don't.
type Tables interface {
	// Item begins an item about a key.
	Item(key string) Item
	// Owner is an owner as the tables have it.
	Owner(owner string) string
	// Fence is the name of a key in the table of fences.
	Fence(key string) string
	// Holder describes the holder of a key.
	Holder(Answer) string
	// Request is what a routine takes, to be sent as JSON.
	Request(sent time.Time, items []Item) any
	// Observe takes in that the server's clock stood at server at some moment between the
	// sending of a request and the receipt of its answer.
	Observe(server, sent, received time.Time)
}

// A Conn is how a store uses its database. It is safe for concurrent use.
type Conn struct {
	Config

	db      *sql.DB
	pool    *pgxpool.Pool // which db is made of, if not nil
	release func()
	dialect *dialect

	complete atomic.Bool // the routines were there
	closed   atomic.Bool

	// WholeTransactions: statements don't run at READ COMMITTED by themselves. It is
	// noticed by the first call.
	WholeTransactions atomic.Bool
}

// Open makes a Conn, and sends nothing yet.
func Open(d Database, config Config) (*Conn, error) {
	db, release, err := d.open()
	if err != nil {
		return nil, err
	}
	return &Conn{Config: config, db: db, pool: d.pool, release: release, dialect: d.dialect}, nil
}

// Close ends the Conn, and reports whether it was open. The application's pool stays open.
func (c *Conn) Close() bool {
	if c.closed.Swap(true) {
		return false
	}
	c.release()
	return true
}

// Closed reports whether Close was called.
func (c *Conn) Closed() bool { return c.closed.Load() }

// DB is what statements of the store's own are run on.
func (c *Conn) DB() *sql.DB { return c.db }

// Kind is KindPostgres or KindMySQL.
func (c *Conn) Kind() string { return c.dialect.name }

// Failure says what an error of the database means to asynclock.
func (c *Conn) Failure(err error) error { return c.dialect.failure(err) }

// IsDuplicate reports whether an error says that there is such a row already.
func (c *Conn) IsDuplicate(err error) bool { return c.dialect.duplicate(err) }

// CheckServer refuses a server on which every lock would fail.
func (c *Conn) CheckServer(ctx context.Context) error {
	if c.dialect.refuses == "" {
		return nil
	}
	why, err := Value[string](ctx, c, c.dialect.refuses)
	if err == nil && why != "" {
		err = &SchemaError{c.Prefix + "*", why}
	}
	return err
}

// CheckRoutines sees whether the routines are there and are ours.
func (c *Conn) CheckRoutines(ctx context.Context) error {
	_, err := c.Call(ctx, "INSPECT", []Item{})
	c.complete.Store(err == nil)
	return err
}

// Value runs a statement that answers with one value.
func Value[T any](ctx context.Context, c *Conn, statement string, args ...any) (value T, err error) {
	if err = c.db.QueryRowContext(ctx, statement, args...).Scan(&value); err != nil {
		err = c.Failure(err)
	}
	return value, err
}
