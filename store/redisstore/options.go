// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"log/slog"

	"github.com/asynclock/asynclock-go/asynclock"
)

// DefaultPrefix begins all Redis keys and channels without [WithPrefix].
const DefaultPrefix = "asynclock"

// maxPrefixLen is the longest prefix, in bytes.
const maxPrefixLen = 64

// An Option configures a [Store], in [Open] and [New].
type Option func(*settings) error

type settings struct {
	prefix string
	logger *slog.Logger
}

func newSettings(opts []Option) (settings, error) {
	s := settings{prefix: DefaultPrefix, logger: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("%w: nil option", asynclock.ErrBadOption)
		}
		if err := o(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// WithPrefix sets what all Redis keys and channels begin with: a namespace of
// its own, and the pattern for an ACL. It consists of 1 to 64 letters, digits,
// dots, underscores and hyphens. Default [DefaultPrefix].
func WithPrefix(prefix string) Option {
	return func(s *settings) error {
		if prefix == "" || len(prefix) > maxPrefixLen {
			return fmt.Errorf("%w: prefix of %d bytes, 1 to %d are allowed", asynclock.ErrBadOption, len(prefix), maxPrefixLen)
		}
		for _, c := range []byte(prefix) {
			if !isPrefixByte(c) {
				return fmt.Errorf("%w: prefix %q has a character other than letters, digits, '.', '_' and '-'", asynclock.ErrBadOption, prefix)
			}
		}
		s.prefix = prefix
		return nil
	}
}

func isPrefixByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// WithLogger sets where the store writes what an operator may want to know: that
// messages don't come through, and that they do again. Owner ids never appear in
// it. Default: nothing is written.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) error {
		if logger == nil {
			return fmt.Errorf("%w: nil logger", asynclock.ErrBadOption)
		}
		s.logger = logger
		return nil
	}
}
