// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"context"
	"fmt"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// A Store is the locks of one region of Java's table. It shares them with every
// JdbcLockRegistry and every other Store of that region.
type Store struct {
	conn     *sqlconn.Conn
	settings *settings
	log      *asynclog.Log
	clocks   *skewWatch
}

var _ store.Store = (*Store)(nil)

// New shares locks with Java: with every JdbcLockRegistry whose DefaultLockRepository has
// the same table, by [WithPrefix], and region, by [WithRegion]. [Migrate] makes the table
// and what this store needs beside it.
//
// It looks at the table first. The errors are asynclock's ErrInvalidOption, ErrUnreachable,
// ErrDenied, ErrClosed (the pool is) and ctx's own. A [*SchemaError] says that tables or
// routines are missing or of another release, that the server could write no lock, or
// that peers could steal each other's live locks.
func New(ctx context.Context, database Database, opts ...Option) (*Store, error) {
	st, err := open(database, opts)
	if err != nil {
		return nil, err
	}
	err = st.conn.CheckServer(ctx)
	if err == nil {
		err = st.check(ctx)
	}
	if err != nil {
		st.Close()
		return nil, sqlconn.Opened("springsql", err)
	}
	return st, nil
}

// open makes a store, and looks at nothing.
func open(database Database, opts []Option) (*Store, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	t := &tables{settings: &s}
	conn, err := sqlconn.Open(database, t.config())
	if err != nil {
		return nil, err
	}
	st := &Store{conn: conn, settings: &s, log: s.log(), clocks: &t.clocks}
	t.clocks.bound, t.clocks.log = s.skew, st.log
	return st, nil
}

// Close ends the store. From now on the store and its sessions answer with
// asynclock.ErrClosed. The application's pool stays open. Close the asynclock.Clients first,
// and the pool last: clients of a closed store or pool can't give back the keys that they
// hold. Close waits a second at most for the log handler.
func (st *Store) Close() {
	if st.conn != nil && st.conn.Close() {
		st.log.Close()
	}
}

// Features are tokens. There is no queue: Java's waiters are in none.
func (st *Store) Features() store.Features {
	f := features
	f.Name = "spring-" + st.conn.Kind()
	return f
}

var features = store.Features{Tokens: true}

// Open connects a client. It does not wait. The id must be printable ASCII without
// spaces, of at most 128 bytes.
func (st *Store) Open(id string, events func(store.Event)) (store.Session, error) {
	if st.conn == nil {
		return nil, errZero
	}
	joined, err := sqlconn.NewSession(st.conn, id, events, st.settings.pollInterval)
	if err != nil {
		return nil, err
	}
	return &session{Session: joined, store: st}, nil
}

// errZero is the error of a Store that is only declared.
var errZero = fmt.Errorf("%w: springsql: a Store that New did not make", store.ErrInvalidOption)
