// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/store"
)

// A Store is the locks of one set of tables in one database. It shares them with
// every other Store of these tables.
type Store struct {
	db       *sql.DB
	release  func()
	dialect  dialect
	settings settings
	log      *asynclog.Log
	skew     skewWatch
	connect  connector // for messages; nil: waiters poll
	open     bool      // its routines were there

	wholeTransactions atomic.Bool // statements don't run at READ COMMITTED by themselves
	closed            atomic.Bool
}

var _ store.Store = (*Store)(nil)

// New uses tables of the store's own, which [Migrate] makes. The errors are
// asynclock's ErrBadOption, ErrUnreachable, ErrDenied, ErrClosed (the pool is) and
// ctx's own, and [*SchemaError] where tables or routines are missing or of another
// release, or the server could write no lock.
func New(ctx context.Context, database Database, opts ...Option) (*Store, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	return open(ctx, database, s, (*Store).checkRoutines)
}

// NewSpring shares locks with Java: with every JdbcLockRegistry whose
// DefaultLockRepository has the same table, by [WithPrefix], and region, by
// [WithRegion]. [MigrateSpring] makes the table and what this store needs beside it.
//
// It looks at the table first. The errors are those of [New], with a [*SchemaError]
// also where peers could steal each other's live locks.
func NewSpring(ctx context.Context, database Database, opts ...SpringOption) (*Store, error) {
	s, err := newSpringSettings(opts)
	if err != nil {
		return nil, err
	}
	return open(ctx, database, s, (*Store).checkSpring)
}

func open(ctx context.Context, database Database, s settings, check func(*Store, context.Context) error) (*Store, error) {
	db, release, err := database.open()
	if err != nil {
		return nil, err
	}
	st := &Store{db: db, release: release, dialect: database.dialect, settings: s, log: asynclog.New(s.logger)}
	if s.spring != nil {
		st.skew.bound, st.skew.log = s.spring.skew, st.log
	}
	err = st.checkServer(ctx)
	if err == nil {
		err = check(st, ctx)
	}
	st.open = err == nil
	if err == nil && s.spring == nil && s.listen {
		st.connect, err = database.connector(ctx, db)
	}
	if err != nil {
		release()
		st.log.Close()
		return nil, opened(err)
	}
	return st, nil
}

// opened is why a store can't be opened.
func opened(err error) error {
	var schema *SchemaError
	if errors.As(err, &schema) {
		return err
	}
	return fmt.Errorf("sqlstore: open: %w", err)
}

// checkServer refuses a server on which every lock would fail.
func (st *Store) checkServer(ctx context.Context) error {
	if st.dialect.refuses == "" {
		return nil
	}
	why, err := query[string](ctx, st.db, st.dialect, st.dialect.refuses)
	if err == nil && why != "" {
		err = &SchemaError{st.settings.prefix + "*", why}
	}
	return err
}

// checkRoutines sees whether the routines are there and are ours.
func (st *Store) checkRoutines(ctx context.Context) error {
	_, err := st.call(ctx, "INSPECT", []item{})
	return err
}

// Close ends the store, which answers with asynclock.ErrClosed from now on, to its
// sessions too. The application's pool stays open. Close the asynclock.Clients
// first, and the pool last: those of a closed store or pool can't give back what they
// hold. It waits a second at most for the log handler.
func (st *Store) Close() {
	if !st.closed.Swap(true) {
		st.release()
		st.log.Close()
	}
}

// Features are tokens always. A queue is what only a store's own tables have, for
// Java's waiters are in none.
func (st *Store) Features() store.Features {
	return store.Features{Tokens: true, FIFO: st.settings.spring == nil}
}

// Open connects a client. It does not wait; where there are messages, it begins to
// connect for them. The id must be printable ASCII without spaces, of at most 128
// bytes.
func (st *Store) Open(id string, events func(store.Event)) (store.Session, error) {
	switch {
	case !isField(id):
		return nil, fmt.Errorf("%w: client id must be printable ASCII without spaces", store.ErrBadOption)
	case events == nil:
		return nil, fmt.Errorf("%w: nil events", store.ErrBadOption)
	case st.closed.Load():
		return nil, store.ErrClosed
	}
	s := &session{store: st, id: id, events: events}
	if st.connect != nil {
		s.openInbox()
	}
	return s, nil
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
