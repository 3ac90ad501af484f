// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

// An Option changes what [Handler] shows and allows.
type Option func(*settings) error

type settings struct {
	prefix    string
	force     bool
	store     store.Store // nil: nothing is checked
	jobs      []string    // keys
	elections []string    // keys
	logger    *slog.Logger

	crossOrigin *http.CrossOriginProtection
}

func newSettings(options []Option) (settings, error) {
	s := settings{crossOrigin: http.NewCrossOriginProtection()}
	var errs []error
	for _, o := range options {
		if o == nil {
			errs = append(errs, invalid("nil option"))
			continue
		}
		errs = append(errs, o(&s))
	}
	for _, key := range slices.Concat(s.jobs, s.elections) {
		if !utf8.ValidString(key) || len(key) > store.MaxKeyLen || !s.shows(key) {
			errs = append(errs, invalid(fmt.Sprintf("%q is no key, or none that begins with %q", key, s.prefix)))
		}
	}
	return s, errors.Join(errs...)
}

func invalid(what string) error {
	return fmt.Errorf("%w: asynclockui: %s", asynclock.ErrInvalidOption, what)
}

// shows reports whether the page may show a key.
func (s *settings) shows(key string) bool { return key != "" && strings.HasPrefix(key, s.prefix) }

// WithPrefix shows only keys that begin so, and nothing of others. Keys of [WithJobs] and [WithElections] have to begin so,
// too. Default: all keys of the store.
func WithPrefix(prefix string) Option {
	return func(s *settings) error {
		if s.prefix = prefix; !utf8.ValidString(prefix) || len(prefix) > store.MaxKeyLen {
			return invalid("no key has this prefix")
		}
		return nil
	}
}

// WithForceUnlock allows whoever sees the page to take a key from its holder, once the key has been typed. It is what
// [asynclock.Client.ForceUnlock] does: for a while both the old and the next holder may believe that they hold it. Each
// time is logged as a warning, with the key, the holder, the token and the address of the request. The record has the
// request's context, so a handler of slog can add who has sent it. Default: the page offers nothing of the kind. Mount a
// second page, without this option, for those who may only look.
func WithForceUnlock() Option {
	return func(s *settings) error {
		s.force = true
		return nil
	}
}

// WithChecks shows whether the store is fit for locks, and why a key is waited for, as package doctor finds out. All who see
// the page can start these checks, one at a time. They take scratch keys for milliseconds. The store is the one that
// the client was made with. The page does not close it. Default: no checks.
func WithChecks(st store.Store) Option {
	return func(s *settings) error {
		if v := reflect.ValueOf(st); st == nil || v.Kind() == reflect.Pointer && v.IsNil() {
			return invalid("nil store")
		}
		s.store = st
		return nil
	}
}

// WithJobs shows the last run of each of these jobs of package once. Their keys are those of once.Do.
func WithJobs(keys ...string) Option {
	return func(s *settings) error {
		s.jobs = append(s.jobs, slices.Clone(keys)...)
		return nil
	}
}

// WithElections shows who leads in each of these elections of package elect.
func WithElections(keys ...string) Option {
	return func(s *settings) error {
		s.elections = append(s.elections, slices.Clone(keys)...)
		return nil
	}
}

// WithOrigin lets pages of an origin, as "https://admin.example", send forms to this one. It is needed if a proxy changes the
// Host of requests and the browser speaks http with it. Default: the page's own origin alone.
func WithOrigin(origin string) Option {
	return func(s *settings) error {
		if err := s.crossOrigin.AddTrustedOrigin(origin); err != nil {
			return invalid(err.Error())
		}
		return nil
	}
}

// WithLogger sets where forced keys are logged. Default: slog.Default, whichever it is at that moment.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) error {
		if logger == nil {
			return invalid("nil logger")
		}
		s.logger = logger
		return nil
	}
}
