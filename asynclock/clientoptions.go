// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/internal/fortests"
	"github.com/asynclock/asynclock-go/store"
)

// A ClientOption configures a [Client], in [New].
type ClientOption interface {
	applyClient(*clientSettings) error
}

type clientSettings struct {
	lock       lockSettings
	rlock      lockSettings // for readers
	log        func() *asynclog.Log
	ownedStore bool
	leaks      *bool // nil: as the store wants
	hooks      []func(*Client) (Hooks, error)
}

// newSettings returns the settings of a client with these options.
func newSettings(options []ClientOption) (clientSettings, error) {
	s := defaultSettings()
	var first error // all options count, so that an owned store is known to be one
	for _, o := range options {
		err := fmt.Errorf("%w: nil option", ErrInvalidOption)
		if o != nil {
			err = o.applyClient(&s)
		}
		first = cmp.Or(first, err)
	}
	s.lock.given = 0 // these are defaults
	return s, first
}

// closerOf returns the function that closes the store, if the client owns it, and one that does
// nothing otherwise.
func (s *clientSettings) closerOf(st store.Store) (func() error, error) {
	nothing := func() error { return nil }
	if !s.ownedStore {
		return nothing, nil
	}
	switch owned := st.(type) {
	case io.Closer:
		return owned.Close, nil
	case interface{ Close() }:
		return func() error {
			owned.Close()
			return nil
		}, nil
	}
	return nothing, fmt.Errorf("%w: %T has no method Close to own it by", ErrInvalidOption, st)
}

type clientOption func(*clientSettings) error

func (o clientOption) applyClient(s *clientSettings) error { return o(s) }

// WithLogger sets where the client logs what an operator may need. Losses, failed waits and failed
// releases are warnings. Failed renewals and stale messages are at debug level. Keys and tokens
// appear in the log, owner ids never. The logger is called in order, by a goroutine that nothing
// else depends on, and may block.
//
// Default: warnings and errors go to [slog.Default], whichever it is at that moment. Each message is
// written once a minute at most. [WithoutLogger] silences the client.
func WithLogger(logger *slog.Logger) ClientOption {
	return clientOption(func(s *clientSettings) error {
		if logger == nil {
			return fmt.Errorf("%w: nil logger", ErrInvalidOption)
		}
		s.log = func() *asynclog.Log { return asynclog.New(logger) }
		return nil
	})
}

// WithoutLogger silences the client: nothing is logged, not even warnings.
func WithoutLogger() ClientOption {
	return clientOption(func(s *clientSettings) error {
		s.log = func() *asynclog.Log { return nil }
		return nil
	})
}

// WithLeakDetection says whether the log warns of leases that were forgotten. Use it in development, in tests, and in one
// process of many. Default: false, except with a store of package asynclocktest.
//
// A lease is forgotten if nothing in the program refers to it any more, so nobody can unlock it. The client renews it
// until [Client.Close], and nobody else gets its key. It can't know that this is not meant, so it gives nothing back. The
// warning has the key, the age, and file and line of the call. It comes once for each lease, after a later garbage
// collection, and once for all keys of a [MultiLease].
//
// Not forgotten is a lease if a reference is left to any of these: the lease itself, one of its methods, its context, the
// channel of Done, or a context that was made from its context and has not ended. Neither is one that has ended, or that
// lies in the channel of a future. One that was received from it and not looked at is. With [WithHooks], the context of a
// request is kept until its lease ends.
//
// Each lease costs some microseconds and 0.4 KB more.
func WithLeakDetection(on bool) ClientOption {
	return clientOption(func(s *clientSettings) error {
		s.leaks = &on
		return nil
	})
}

// detectsLeaks reports whether a client of the store detects leaks.
func (s *clientSettings) detectsLeaks(st store.Store) bool {
	if s.leaks != nil {
		return *s.leaks
	}
	_, forTests := st.(fortests.Store)
	return forTests
}

// WithOwnedStore gives the store to the client: [Client.Close] closes it last, and [New] closes it
// if it fails. Use it for a store that serves this client only. The store must have a method Close
// without arguments, and with an error or no result. Otherwise New fails with [ErrInvalidOption].
func WithOwnedStore() ClientOption {
	return clientOption(func(s *clientSettings) error {
		s.ownedStore = true
		return nil
	})
}
