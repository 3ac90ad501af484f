// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

const (
	// patience bounds how long Open waits for a server. It is longer than the limits of the stores' own functions,
	// whose errors say more.
	patience = 15 * time.Second
	// migration bounds how long Migrate does.
	migration = time.Minute
)

// An Option configures a [Store], in [Open].
type Option interface {
	apply(*settings) error
}

type option func(*settings) error

func (o option) apply(s *settings) error { return o(s) }

type settings struct {
	silent bool
	logger *slog.Logger // nil: the store's default
}

func newSettings(opts []Option) (s settings, err error) {
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("%w: nil option", store.ErrInvalidOption)
		}
		if err := o.apply(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// WithLogger is WithLogger of the store that is opened. Default: warnings and errors go to slog.Default().
func WithLogger(logger *slog.Logger) Option {
	return option(func(s *settings) error {
		if logger == nil {
			return fmt.Errorf("%w: nil logger", store.ErrInvalidOption)
		}
		s.logger, s.silent = logger, false
		return nil
	})
}

// WithoutLogger silences the store: nothing is written, not even warnings.
func WithoutLogger() Option {
	return option(func(s *settings) error {
		s.logger, s.silent = nil, true
		return nil
	})
}

// logging returns the option of a store that says where it logs, or none.
func logging[O any](s settings, with func(*slog.Logger) O, without func() O) []O {
	switch {
	case s.silent:
		return []O{without()}
	case s.logger != nil:
		return []O{with(s.logger)}
	}
	return nil
}

// A Store is the store that a URL names, and its connections. Make one with [Open].
type Store struct {
	store  store.Store
	closes []func() // in this order
}

var (
	_ store.CheckedStore = (*Store)(nil)
	_ store.GraceStore   = (*Store)(nil)
)

type closable interface {
	store.Store
	Close()
}

// opened makes a Store of what a store's own function has returned.
func opened[S closable](st S, err error) (*Store, error) {
	if err != nil {
		return nil, err
	}
	return &Store{st, []func(){st.Close}}, nil
}

// errZero is the error of a Store that is only declared.
var errZero = fmt.Errorf("%w: anystore: a Store that Open did not make", store.ErrInvalidOption)

// Open opens the store that a URL names, as the package comment says. It waits 15 seconds at most, and not longer than
// ctx. Tables have to be there: see [Migrate].
//
// The errors are those of asynclock: ErrInvalidOption for a URL that is not understood, ErrUnreachable, ErrDenied, and
// ctx's own; for a database also *sqlstore.SchemaError. None has a part of the URL that may be a password.
func Open(ctx context.Context, url string, opts ...Option) (*Store, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	l, err := parse(url)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	st, err := soon(within, func() (*Store, error) { return l.scheme.open(within, l, s) })
	return st, inTime(ctx, within, err)
}

// soon opens a store, and does not wait for it when ctx has ended: not each store's own function has a context.
func soon(ctx context.Context, open func() (*Store, error)) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type result struct {
		st  *Store
		err error
	}
	opened := make(chan result)
	go func() { // ends with open, which has limits of its own
		st, err := open()
		select {
		case opened <- result{st, err}:
		case <-ctx.Done():
			if st != nil {
				st.Close()
			}
		}
	}()
	select {
	case r := <-opened:
		return r.st, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Migrate makes or updates the tables of the database that a URL names: sqlstore.Migrate and springsql.Migrate. Other
// stores have none, and need nothing. Its errors are those of [Open]. It waits a minute at most.
func Migrate(ctx context.Context, url string) error {
	l, err := parse(url)
	if err != nil || l.scheme.migrate == nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, migration)
	defer cancel()
	return inTime(ctx, within, l.scheme.migrate(within, l))
}

// inTime returns err, which is ErrUnreachable if our own patience has ended, and not ctx.
func inTime(ctx, within context.Context, err error) error {
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: no answer in time: %w", store.ErrUnreachable, err)
	}
	return err
}

// Open connects a client, as the store does that the URL names.
func (st *Store) Open(id string, notify func(store.Event)) (store.Session, error) {
	if st.store == nil {
		return nil, errZero
	}
	return st.store.Open(id, notify)
}

// Features says what the store can do that the URL names.
func (st *Store) Features() store.Features {
	if st.store == nil {
		return store.Features{}
	}
	return st.store.Features()
}

// Check examines the servers, if the store can.
func (st *Store) Check(ctx context.Context, report func(store.Finding)) {
	if checked, ok := st.store.(store.CheckedStore); ok {
		checked.Check(ctx, report)
	}
}

// Graces returns the graces of the servers. It is asynclock.ErrUnsupported if the store has none.
func (st *Store) Graces(ctx context.Context) ([]store.Grace, error) {
	if graced, ok := st.store.(store.GraceStore); ok {
		return graced.Graces(ctx)
	}
	return nil, st.graceless()
}

// EndGrace ends a grace before its time, as [store.GraceStore] says.
func (st *Store) EndGrace(ctx context.Context, end store.GraceEnd) (store.GraceEnded, error) {
	if graced, ok := st.store.(store.GraceStore); ok {
		return graced.EndGrace(ctx, end)
	}
	return store.GraceEnded{}, st.graceless()
}

func (st *Store) graceless() error {
	if st.store == nil {
		return errZero
	}
	return fmt.Errorf("%w: this store forgets nothing, so it has no grace", store.ErrUnsupported)
}

// Close closes the store and its connections. Close the asynclock.Clients first, or open them with
// asynclock.WithOwnedStore. It waits some seconds at most, also for a server that does not answer.
func (st *Store) Close() {
	for _, end := range st.closes {
		end()
	}
}
