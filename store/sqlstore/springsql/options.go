// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// Defaults.
const (
	// DefaultPrefix is what Java's DefaultLockRepository has: the table is INT_LOCK.
	DefaultPrefix = "INT_"
	// DefaultRegion is the REGION of Java's DefaultLockRepository.
	DefaultRegion = "DEFAULT"
	// DefaultPollInterval is the pause between two polls without [WithPollInterval], as
	// in Java.
	DefaultPollInterval = sqlconn.DefaultPollInterval
	// DefaultTTL is the TTL of Java's registries and repositories, unless they were told
	// otherwise. A Go client that shares its keys with Java may want the same:
	//
	//	asynclock.New(store, asynclock.WithTTL(springsql.DefaultTTL))
	DefaultTTL = 10 * time.Second
	// DefaultSkew is the bound of [WithSkewWarning].
	DefaultSkew = time.Second
)

// An Option configures a [Store], in [New], [Migrate] and [MigrationSQL].
type Option interface {
	apply(*settings) error
}

type settings struct {
	prefix       string
	pollInterval time.Duration
	log          func() *asynclog.Log

	region  string
	fence   string // the region as in the table of fences: New makes one of all that are one to Java's table
	version SpringVersion
	ttl     time.Duration // of Java's repositories, for Spring6
	skew    time.Duration // 0: don't warn
}

type option func(*settings) error

func (o option) apply(s *settings) error { return o(s) }

func newSettings(opts []Option) (settings, error) {
	s := settings{
		log:    asynclog.Default,
		prefix: DefaultPrefix, pollInterval: DefaultPollInterval,
		region: DefaultRegion, ttl: DefaultTTL, skew: DefaultSkew,
	}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("%w: nil option", store.ErrInvalidOption)
		}
		if err := o.apply(&s); err != nil {
			return s, err
		}
	}
	s.fence = s.region
	return s, nil
}

// WithPrefix sets what the names of tables and routines begin with: letters of
// ASCII, digits and underscores, at most 31 of them, after a schema and a dot if
// need be. It is the prefix of Java's DefaultLockRepository. Default [DefaultPrefix].
func WithPrefix(prefix string) Option {
	return option(func(s *settings) error {
		s.prefix = prefix
		return sqlconn.CheckPrefix(prefix)
	})
}

// WithPollInterval sets the pause between two polls of a waiter, give or take a third. It is
// from 1 ms to a minute. Waiters that have waited for long poll up to ten times more
// rarely. Default [DefaultPollInterval].
func WithPollInterval(interval time.Duration) Option {
	return option(func(s *settings) error {
		s.pollInterval = interval
		return sqlconn.CheckPollInterval(interval)
	})
}

// WithLogger sets where the store writes what an operator may want to know: that clocks
// differ. A goroutine of its own calls the handler, so a slow handler delays nothing. While
// 1000 records wait for the handler, further records are dropped.
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

// WithRegion sets the REGION of Java's DefaultLockRepository: UTF-8 of 1 to 100 characters,
// not all of them spaces and none of them NUL; on MySQL they have to be ASCII. Locks of
// different regions are different locks. Java's table on MySQL, as Spring makes it, takes
// regions that differ only by case, or by spaces at the end, for the same. [New] refuses a region of which another
// spelling was used in the last day. Default [DefaultRegion].
func WithRegion(region string) Option {
	return option(func(s *settings) error {
		if n := utf8.RuneCountInString(region); n > 100 || !utf8.ValidString(region) ||
			strings.TrimSpace(region) == "" || strings.ContainsRune(region, 0) {
			return fmt.Errorf("%w: a region has 1 to 100 characters of UTF-8, not all of them spaces and none of them NUL", store.ErrInvalidOption)
		}
		s.region = region
		return nil
	})
}

// WithSpringVersion names the releases of Spring Integration that the table belongs
// to. [New] refuses a table of other releases. Default: what the table looks like; for
// [Migrate] and [MigrationSQL] [Spring7].
func WithSpringVersion(v SpringVersion) Option {
	return option(func(s *settings) error {
		if v != Spring6 && v != Spring7 {
			return fmt.Errorf("%w: %v", store.ErrInvalidOption, v)
		}
		s.version = v
		return nil
	})
}

// WithRepositoryTTL is for [Spring6], whose table does not say when a lock ends:
// each reader adds a TTL of its own to when it was taken or renewed. It sets that
// TTL, which has to be the same in every Java repository and every Go store of the
// table (setTimeToLive in Java). One with a shorter TTL steals live locks. From
// asynclock.MinTTL to asynclock.MaxTTL. Default [DefaultTTL], as in Java.
func WithRepositoryTTL(ttl time.Duration) Option {
	return option(func(s *settings) error {
		if ttl < store.MinTTL || ttl > store.MaxTTL {
			return fmt.Errorf("%w: repository TTL %v is outside %v to %v", store.ErrInvalidOption, ttl, store.MinTTL, store.MaxTTL)
		}
		s.ttl = ttl
		return nil
	})
}

// WithSkewWarning sets the bound of the difference between this machine's clock and the
// database server's. A larger difference is logged as a warning when it is first seen, and
// each time that it comes back. 0 turns the warning off. Two clients whose clocks differ from
// the server's by less than the bound differ from each other by less than twice that. Default
// [DefaultSkew].
func WithSkewWarning(bound time.Duration) Option {
	return option(func(s *settings) error {
		if bound < 0 {
			return fmt.Errorf("%w: skew %v", store.ErrInvalidOption, bound)
		}
		s.skew = bound
		return nil
	})
}
