// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
)

// Defaults.
const (
	// DefaultPrefix begins the names of the store's own tables and routines.
	DefaultPrefix = "asynclock_"
	// DefaultSpringPrefix is what Java's DefaultLockRepository has: the table is
	// INT_LOCK.
	DefaultSpringPrefix = "INT_"
	// DefaultRegion is the REGION of Java's DefaultLockRepository.
	DefaultRegion = "DEFAULT"
	// DefaultIdle is the pause between two tries without [WithIdle], as in Java.
	DefaultIdle = 100 * time.Millisecond
	// DefaultSpringTTL is the TTL of Java's registries and repositories, unless they
	// were told otherwise. A Go client that shares its keys with Java may want the
	// same:
	//
	//	asynclock.New(store, asynclock.WithTTL(sqlstore.DefaultSpringTTL))
	DefaultSpringTTL = 10 * time.Second
	// DefaultSkew is the bound of [WithSkewWarning].
	DefaultSkew = time.Second

	minIdle = time.Millisecond
	maxIdle = time.Minute
)

// A SpringOption configures a [Store] that shares its locks with Java, in
// [NewSpring] and [MigrateSpring].
type SpringOption interface {
	applySpring(*settings) error
}

// An Option configures any [Store].
type Option interface {
	SpringOption
	apply(*settings) error
}

type settings struct {
	prefix string
	idle   time.Duration
	logger *slog.Logger // nil: nothing is written
	listen bool
	spring *springSettings // nil: native
}

type springSettings struct {
	region     string
	generation Generation
	ttl        time.Duration // of Java's repositories, for Spring6
	skew       time.Duration // 0: don't warn
}

type option func(*settings) error

func (o option) apply(s *settings) error       { return o(s) }
func (o option) applySpring(s *settings) error { return o(s) }

type springOption func(*springSettings) error

func (o springOption) applySpring(s *settings) error { return o(s.spring) }

var errNilOption = fmt.Errorf("%w: nil option", store.ErrBadOption)

func newSettings(opts []Option) (settings, error) {
	s := settings{prefix: DefaultPrefix, idle: DefaultIdle, listen: true}
	for _, o := range opts {
		if o == nil {
			return s, errNilOption
		}
		if err := o.apply(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func newSpringSettings(opts []SpringOption) (settings, error) {
	s, err := newSettings([]Option{WithPrefix(DefaultSpringPrefix)})
	if err != nil {
		return s, err
	}
	s.spring = &springSettings{region: DefaultRegion, ttl: DefaultSpringTTL, skew: DefaultSkew}
	for _, o := range opts {
		if o == nil {
			return s, errNilOption
		}
		if err := o.applySpring(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// prefixPattern: no quotes, so that the database folds the case as it does for
// Java's unquoted names.
var prefixPattern = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,30}\.)?[A-Za-z_][A-Za-z0-9_]{0,30}$`)

// WithPrefix sets what the names of tables and routines begin with: letters of
// ASCII, digits and underscores, at most 31 of them, after a schema and a dot if
// need be. It is the prefix of Java's DefaultLockRepository. Default [DefaultPrefix];
// for [NewSpring] [DefaultSpringPrefix].
func WithPrefix(prefix string) Option {
	return option(func(s *settings) error {
		if !prefixPattern.MatchString(prefix) {
			return fmt.Errorf("%w: prefix %q", store.ErrBadOption, prefix)
		}
		s.prefix = prefix
		return nil
	})
}

// WithIdle sets the pause between two tries of a waiter that no message can be
// counted on for, give or take a third. It is from 1 ms to a minute. Waiters that
// have waited for long ask up to ten times more rarely. Default [DefaultIdle].
func WithIdle(idle time.Duration) Option {
	return option(func(s *settings) error {
		if idle < minIdle || idle > maxIdle {
			return fmt.Errorf("%w: idle %v, %v to %v are allowed", store.ErrBadOption, idle, minIdle, maxIdle)
		}
		s.idle = idle
		return nil
	})
}

// WithLogger sets where the store writes what an operator may want to know: clocks
// that differ, that messages don't come through, and that they do again. Owner ids
// never appear in it. A goroutine of its own calls the handler, so one that is slow or
// blocks delays nothing; beyond 1000 records that wait for it, more are dropped.
// Default: nothing is written.
func WithLogger(logger *slog.Logger) Option {
	return option(func(s *settings) error {
		if logger == nil {
			return fmt.Errorf("%w: nil logger", store.ErrBadOption)
		}
		s.logger = logger
		return nil
	})
}

// WithRegion sets the REGION of Java's DefaultLockRepository: UTF-8 of 1 to 100
// characters, not all of them spaces and none of them NUL; on MySQL they have to be ASCII.
// Locks of different regions are different locks. To Java's table on MySQL, as Spring
// makes it, regions are the same that differ by case alone; [NewSpring] refuses one of
// which another spelling was used in the last day. Default [DefaultRegion].
func WithRegion(region string) SpringOption {
	return springOption(func(s *springSettings) error {
		if n := utf8.RuneCountInString(region); n > 100 || !utf8.ValidString(region) ||
			strings.TrimSpace(region) == "" || strings.ContainsRune(region, 0) {
			return fmt.Errorf("%w: a region has 1 to 100 characters of UTF-8, not all of them spaces and none of them NUL", store.ErrBadOption)
		}
		s.region = region
		return nil
	})
}

// WithGeneration names the releases of Spring Integration that the table belongs
// to. [NewSpring] refuses a table of the other generation. Default: what the table
// looks like; for [MigrateSpring] [Spring7].
func WithGeneration(g Generation) SpringOption {
	return springOption(func(s *springSettings) error {
		if g != Spring6 && g != Spring7 {
			return fmt.Errorf("%w: %v", store.ErrBadOption, g)
		}
		s.generation = g
		return nil
	})
}

// WithRepositoryTTL is for [Spring6], whose table does not say when a lock ends:
// each reader adds a TTL of its own to when it was taken or renewed. It sets that
// TTL, which has to be the same in every Java repository and every Go store of the
// table (setTimeToLive in Java). One with a shorter TTL steals live locks. From
// asynclock.MinTTL to asynclock.MaxTTL. Default [DefaultSpringTTL], as in Java.
func WithRepositoryTTL(ttl time.Duration) SpringOption {
	return springOption(func(s *springSettings) error {
		if ttl < store.MinTTL || ttl > store.MaxTTL {
			return fmt.Errorf("%w: repository TTL %v is outside %v to %v", store.ErrBadOption, ttl, store.MinTTL, store.MaxTTL)
		}
		s.ttl = ttl
		return nil
	})
}

// WithSkewWarning sets from which difference between this machine's clock and the
// database server's on a warning is logged, when it is first seen and each time that
// it comes back; 0 turns it off. Two clients whose clocks differ from the server's
// by less than the bound differ from each other by less than twice that. Default
// [DefaultSkew].
func WithSkewWarning(bound time.Duration) SpringOption {
	return springOption(func(s *springSettings) error {
		if bound < 0 {
			return fmt.Errorf("%w: skew %v", store.ErrBadOption, bound)
		}
		s.skew = bound
		return nil
	})
}

// WithPolling has waiters ask again and again instead of listening for messages, which
// takes a connection for each client beside the pool's, and doesn't work through a
// pooler that shares connections between transactions. There is nothing to choose
// with MySQL, nor with Java's table: waiters always poll.
func WithPolling() Option {
	return option(func(s *settings) error {
		s.listen = false
		return nil
	})
}
