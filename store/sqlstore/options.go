// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// Defaults.
const (
	// DefaultPrefix begins the names of the store's tables and routines.
	DefaultPrefix = "asynclock_"
	// DefaultPollInterval is the pause between two polls without [WithPollInterval].
	DefaultPollInterval = sqlconn.DefaultPollInterval
)

// An Option configures a [Store], in [New], [Migrate] and [MigrationSQL].
type Option interface {
	apply(*settings) error
}

type settings struct {
	prefix       string
	pollInterval time.Duration
	log          func() *asynclog.Log
	listen       bool
}

type option func(*settings) error

func (o option) apply(s *settings) error { return o(s) }

func newSettings(opts []Option) (settings, error) {
	s := settings{log: asynclog.Default, prefix: DefaultPrefix, pollInterval: DefaultPollInterval, listen: true}
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

// config says what the tables and routines are called.
func (s *settings) config() sqlconn.Config {
	return sqlconn.Config{Package: "sqlstore", Prefix: s.prefix, Routines: s.prefix, Fence: s.prefix + "fence", Tables: tables{}, Features: features, Clock: clock}
}

// WithPrefix sets what the names of tables and routines begin with: letters of
// ASCII, digits and underscores, at most 31 of them, after a schema and a dot if
// need be. Default [DefaultPrefix].
func WithPrefix(prefix string) Option {
	return option(func(s *settings) error {
		s.prefix = prefix
		return sqlconn.CheckPrefix(prefix)
	})
}

// WithPollInterval sets the pause between two polls of a waiter, give or take a third. A
// waiter polls when it can't rely on notifications. The interval is from 1 ms to a minute.
// Waiters that have waited for long poll up to ten times more rarely. Default
// [DefaultPollInterval].
func WithPollInterval(interval time.Duration) Option {
	return option(func(s *settings) error {
		s.pollInterval = interval
		return sqlconn.CheckPollInterval(interval)
	})
}

// WithLogger sets where the store writes what an operator may want to know: that
// notifications don't come through, and that they do again. Owner ids never appear in it. A
// goroutine of its own calls the handler, so a slow handler delays nothing. While 1000
// records wait for the handler, further records are dropped.
//
// Default: warnings and errors go to slog.Default(), whichever it is at that moment. Each message
// is written once a minute at most. [WithoutLogger] silences the store.
func WithLogger(logger *slog.Logger) Option {
	return option(func(s *settings) error {
		if logger == nil {
			return fmt.Errorf("%w: nil logger", store.ErrInvalidOption)
		}
		s.log = func() *asynclog.Log { return asynclog.New(logger) }
		return nil
	})
}

// WithoutLogger silences the store: nothing is written, not even warnings.
func WithoutLogger() Option {
	return option(func(s *settings) error {
		s.log = func() *asynclog.Log { return nil }
		return nil
	})
}

// WithoutNotifications has waiters poll instead of listening for notifications. Listening
// takes a connection for each client beside the pool's. It doesn't work through a pooler
// that shares connections between transactions. On MySQL waiters always poll.
func WithoutNotifications() Option {
	return option(func(s *settings) error {
		s.listen = false
		return nil
	})
}
