// SPDX-License-Identifier: Apache-2.0

// Package sqlconn has the common parts of all stores in databases: calling routines for whole
// batches, classifying errors, polling, running migrations and guarding transactions.
package sqlconn

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/asynclock/asynclock-go/store"
)

// A Config has the names of a store's tables and routines, and what they can do.
type Config struct {
	Package  string // of the store, for errors
	Prefix   string // of all names
	Routines string // what the names of the routines begin with
	Fence    string // the table of the tokens that have guarded a transaction
	Tables   Tables
	Features store.Features
	Clock    Clock
}

// Tables describe the tables of one store, in which it differs from other stores.
type Tables interface {
	// Item begins an item about a key.
	Item(key string) Item
	// Owner returns an owner as it is stored in the tables.
	Owner(owner string) string
	// Fence returns the name of a key in the table of fences.
	Fence(key string) string
	// Holder describes the holder of a key.
	Holder(Answer) string
	// Request returns the argument of a routine, which is sent as JSON.
	Request(sent time.Time, items []Item) any
	// Observe records a reading of the server's clock. The clock stood at server at some
	// moment between the sending of a request and the receipt of its answer.
	Observe(server, sent, received time.Time)
}

// A Conn is how a store uses its database. It is safe for concurrent use.
type Conn struct {
	Config

	db      *sql.DB
	pool    *pgxpool.Pool // which db is made of, if not nil
	release func()
	dialect *dialect

	standing atomic.Int32 // how many stand in line for a row, each with a connection
	complete atomic.Bool  // the routines were there
	closed   atomic.Bool

	// WholeTransactions: the default level of statements is not READ COMMITTED, so each call
	// needs a transaction of its own. The first call notices.
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

// Close ends the Conn and reports whether it was open. The application's pool stays open.
func (c *Conn) Close() bool {
	if c.closed.Swap(true) {
		return false
	}
	c.release()
	return true
}

// Closed reports whether Close was called.
func (c *Conn) Closed() bool { return c.closed.Load() }

// DB returns the pool for the store's own statements.
func (c *Conn) DB() *sql.DB { return c.db }

// Kind is KindPostgres or KindMySQL, and empty if there is no connection.
func (c *Conn) Kind() string {
	if c == nil {
		return ""
	}
	return c.dialect.name
}

// Failure says what an error of the database means to asynclock.
func (c *Conn) Failure(err error) error { return c.dialect.failure(err) }

// IsDuplicate reports whether an error says that the row exists already.
func (c *Conn) IsDuplicate(err error) bool { return c.dialect.duplicate(err) }

// CheckServer refuses a server on which every lock would fail.
func (c *Conn) CheckServer(ctx context.Context) error {
	why, err := Value[string](ctx, c, c.dialect.refuses)
	if err == nil && why != "" {
		err = &SchemaError{c.Prefix + "*", why}
	}
	return err
}

// CheckRoutines checks that the routines exist and are ours.
func (c *Conn) CheckRoutines(ctx context.Context) error {
	_, err := c.Call(ctx, "INSPECT", []Item{})
	c.complete.Store(err == nil)
	return err
}

// CheckWrites sweeps a little, to see whether the user has the rights to write. The arguments are those of
// the routine.
func (c *Conn) CheckWrites(ctx context.Context, args string) error {
	name := c.Routines + "SWEEP"
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return c.Failure(err)
	}
	defer func() { _ = conn.Close() }() // back to the pool
	_, err = conn.ExecContext(ctx, c.dialect.runs+name+"("+args+")")
	if err == nil {
		return nil
	}
	_, _ = conn.ExecContext(ctx, "ROLLBACK") // should it fail, so does the connection
	if err = c.failed(err, name); errors.Is(err, store.ErrUnreachable) || errors.Is(err, errServer) {
		return nil // as where others sweep; locks repeat their requests
	}
	return err
}

// Value runs a statement that answers with one value.
func Value[T any](ctx context.Context, c *Conn, statement string, args ...any) (value T, err error) {
	if err = c.db.QueryRowContext(ctx, statement, args...).Scan(&value); err != nil {
		err = c.Failure(err)
	}
	return value, err
}
