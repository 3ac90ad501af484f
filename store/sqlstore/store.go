// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A Store is the locks of one set of tables in one database. It shares them with
// every other Store of these tables.
type Store struct {
	db       *sql.DB
	release  func()
	dialect  dialect
	settings settings
	skew     skewWatch

	wholeTransactions atomic.Bool // statements don't run at READ COMMITTED by themselves
	closed            atomic.Bool
}

var _ asynclock.Store = (*Store)(nil)

// NewSpring shares locks with Java: with every JdbcLockRegistry whose
// DefaultLockRepository has the same table, by [WithPrefix], and region, by
// [WithRegion]. [MigrateSpring] makes the table and what this store needs beside it.
//
// It looks at the table first. The errors are asynclock's ErrBadOption,
// ErrUnreachable, ErrDenied and ctx's own, and [*SchemaError] where the table is not
// what it has to be.
func NewSpring(ctx context.Context, database Database, opts ...SpringOption) (*Store, error) {
	s, err := newSpringSettings(opts)
	if err != nil {
		return nil, err
	}
	db, release, err := database.open()
	if err != nil {
		return nil, err
	}
	st := &Store{db: db, release: release, dialect: database.dialect, settings: s}
	st.skew.bound, st.skew.logger = s.spring.skew, s.logger
	if err := st.checkSpring(ctx); err != nil {
		release()
		return nil, err
	}
	return st, nil
}

// Close ends the store, which answers with asynclock.ErrClosed from now on, to its
// sessions too. The application's pool stays open. Close the asynclock.Clients
// first: those of a closed store can't give back what they hold.
func (st *Store) Close() {
	if !st.closed.Swap(true) {
		st.release()
	}
}

// Features are tokens always. A queue is what only a store's own tables have, for
// Java's waiters are in none.
func (st *Store) Features() asynclock.Features {
	return asynclock.Features{Tokens: true}
}

// Join connects a client. It sends nothing and does not wait. The id must be
// printable ASCII without spaces, of at most 128 bytes.
func (st *Store) Join(id string, events func(asynclock.Event)) (asynclock.Session, error) {
	switch {
	case !isField(id):
		return nil, fmt.Errorf("%w: client id must be printable ASCII without spaces", asynclock.ErrBadOption)
	case events == nil:
		return nil, fmt.Errorf("%w: nil events", asynclock.ErrBadOption)
	case st.closed.Load():
		return nil, asynclock.ErrClosed
	}
	return &session{store: st, events: events}, nil
}

// maxFieldLen bounds owners and client ids.
const maxFieldLen = 128

// isField reports whether s can be an owner: printable ASCII without spaces.
func isField(s string) bool {
	if s == "" || len(s) > maxFieldLen {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
