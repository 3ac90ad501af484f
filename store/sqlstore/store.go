// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// A Store is the locks of one set of tables in one database. It shares them with
// every other Store of these tables.
type Store struct {
	conn     *sqlconn.Conn
	settings settings
	log      *asynclog.Log
	connect  sqlconn.Connector // for notifications; nil: waiters poll
}

var _ store.Store = (*Store)(nil)

// New uses tables which [Migrate] makes. The errors are asynclock's ErrInvalidOption,
// ErrUnreachable, ErrDenied, ErrClosed (the pool is) and ctx's own, and [*SchemaError]
// where tables or routines are missing or of another release, or the server could write
// no lock.
func New(ctx context.Context, database Database, opts ...Option) (*Store, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	conn, err := sqlconn.Open(database, s.config())
	if err != nil {
		return nil, err
	}
	st := &Store{conn: conn, settings: s}
	if err := st.check(ctx); err != nil {
		conn.Close()
		return nil, sqlconn.Opened("sqlstore", err)
	}
	st.log = s.log()
	return st, nil
}

// check checks the server and the routines, and finds out how notifications can come.
func (st *Store) check(ctx context.Context) (err error) {
	if err := st.conn.CheckServer(ctx); err != nil {
		return err
	}
	if err := st.conn.CheckRoutines(ctx); err != nil {
		return err
	}
	if err := st.conn.CheckWrites(ctx, "1"); err != nil {
		return err
	}
	if st.settings.listen {
		st.connect, err = st.conn.Connector(ctx)
	}
	return err
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

// Features are tokens, a queue, keys that readers share or whose permits they take, and notes.
func (st *Store) Features() store.Features {
	f := features
	f.Name = st.conn.Kind()
	return f
}

var features = store.Features{Tokens: true, FIFO: true, Shared: true, Permits: true, Limits: true, Notes: true}

// Open connects a client. It does not wait; where there are notifications, it begins to
// connect for them. The id must be printable ASCII without spaces, of at most 128
// bytes.
func (st *Store) Open(id string, events func(store.Event)) (store.Session, error) {
	if st.conn == nil {
		return nil, errZero
	}
	joined, err := sqlconn.NewSession(st.conn, id, events, st.settings.pollInterval)
	if err != nil {
		return nil, err
	}
	s := &session{Session: joined, store: st, id: id, events: events}
	if st.connect != nil {
		s.openInbox()
	}
	return s, nil
}

// errZero is the error of a Store that is only declared.
var errZero = fmt.Errorf("%w: sqlstore: a Store that New did not make", store.ErrInvalidOption)
