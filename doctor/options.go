// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// An Option says something about the clients of the store.
type Option func(*settings) error

type settings struct {
	ttl    time.Duration // of the clients
	prefix string        // of the keys that are looked at
}

// WithPrefix lets [Check] look only at keys that begin so, and name no others. Default: all keys of the store.
func WithPrefix(prefix string) Option {
	return func(s *settings) error {
		s.prefix = prefix
		return nil
	}
}

// WithTTL says which TTL the clients use, because some verdicts depend on it. Scratch keys have it, too, but at most the
// default, unless the store refuses that. Default [store.DefaultTTL]; from
// [store.MinTTL] to [store.MaxTTL]. Otherwise the error is [store.ErrInvalidOption].
func WithTTL(d time.Duration) Option {
	return func(s *settings) error {
		if d < store.MinTTL || d > store.MaxTTL {
			return fmt.Errorf("%w: a TTL of %v is outside %v to %v", store.ErrInvalidOption, d, store.MinTTL, store.MaxTTL)
		}
		s.ttl = d
		return nil
	}
}

func newSettings(opts []Option) (settings, error) {
	s := settings{ttl: store.DefaultTTL}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("%w: nil option", store.ErrInvalidOption)
		}
		if err := o(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}
