// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/store"
)

// DefaultPrefix begins all Redis keys and channels without [WithPrefix].
const DefaultPrefix = "asynclock"

// DefaultFailoverGrace is the least grace without [WithFailoverGrace].
const DefaultFailoverGrace = store.DefaultTTL

// DefaultCounterTTL is how long the last token of an idle key is kept without [WithCounterTTL].
const DefaultCounterTTL = time.Hour

// Limits of [WithCounterTTL].
const (
	minCounterTTL = time.Minute
	maxCounterTTL = 30 * 24 * time.Hour
)

// maxPrefixLen is the longest prefix, in bytes.
const maxPrefixLen = 64

// An Option configures a [Store], in [Open] and [New].
type Option interface {
	apply(*settings) error
}

type option func(*settings) error

func (o option) apply(s *settings) error { return o(s) }

type settings struct {
	prefix string
	log    asynclog.Choice
	grace  time.Duration // 0: no guard

	counterTTL time.Duration
	lazy       bool // the first dial is not awaited
}

func newSettings(opts []Option) (settings, error) {
	s := settings{prefix: DefaultPrefix, grace: DefaultFailoverGrace, counterTTL: DefaultCounterTTL}
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

// WithPrefix sets what all Redis keys and channels begin with: a namespace of
// its own, and the pattern for an ACL. It consists of 1 to 64 letters, digits,
// dots, underscores and hyphens. Default [DefaultPrefix].
func WithPrefix(prefix string) Option {
	return option(func(s *settings) error {
		if prefix == "" || len(prefix) > maxPrefixLen {
			return fmt.Errorf("%w: prefix of %d bytes, 1 to %d are allowed", store.ErrInvalidOption, len(prefix), maxPrefixLen)
		}
		for _, c := range []byte(prefix) {
			if !isPrefixByte(c) {
				return fmt.Errorf("%w: prefix %q has a character other than letters, digits, '.', '_' and '-'", store.ErrInvalidOption, prefix)
			}
		}
		s.prefix = prefix
		return nil
	})
}

func isPrefixByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// WithFailoverGrace sets for how long, at least, a server grants nothing after it may have
// lost what it acknowledged. The grace counts from the server's start if it was started
// without data. It counts from the moment when this was noticed if the server is a promoted
// replica or was started with old data. In the grace, holders go on, waiters wait, and a
// TryLock fails with an asynclock.GraceError. If the server knows a longer TTL of the last
// day or two, the grace is as long as the longest of these. Redis tells its age in whole seconds,
// so a grace that counts from the server's start may last up to two seconds longer.
//
// Choose the longest TTL in use: a server that was started without data may forget a holding
// with a longer one. All clients of a prefix have to agree. From 100 ms to 24 h, default
// [DefaultFailoverGrace].
func WithFailoverGrace(least time.Duration) Option {
	return option(func(s *settings) error {
		if least < store.MinTTL || least > store.MaxTTL {
			return fmt.Errorf("%w: failover grace %v, %v to %v are allowed", store.ErrInvalidOption, least, store.MinTTL, store.MaxTTL)
		}
		s.grace = least
		return nil
	})
}

// WithoutFailoverGrace turns the grace off, for those who would rather risk two holders than
// wait. After a restart or a failover the server may have forgotten a holder that still
// trusts its lease, and may grant the key again. Until the old holder's next renewal, within
// a third of its TTL, only tokens keep the two apart. A holder that can't reach the new server
// trusts its lease longer, until its deadline. All clients of a prefix have to agree.
//
// Use it also in tests that start a server of their own, and on a developer's machine: a server without
// data can't be distinguished from one that lost its data.
func WithoutFailoverGrace() Option {
	return option(func(s *settings) error {
		s.grace = 0
		return nil
	})
}

// WithCounterTTL sets for how long the last token of an idle key is kept. Each key that is used
// leaves one Redis key behind, of some 145 bytes. docs/production.md says how to size a server.
//
// A token is the server's clock in microseconds, or the last token plus one if that is larger.
// So the last token matters only while the clock is behind it. It is kept until the clock has been
// past it for ttl, also if the tokens had run ahead of the clock. If the clock is set back by more,
// or that of a promoted replica lags by more, the epoch still has the clock of a second ago: tokens
// rise unless the clock goes back by more than a day. Without a failover grace there is no epoch.
// Then the tokens of an idle key may go back with the clock, and also those of a key whose holder
// died, if the clock goes back by more than the holder's TTL. docs/internals/redis.md has the rest.
//
// Clients of a prefix need not agree: what the last user of a key has set counts for that key.
// From a minute to 30 days, default [DefaultCounterTTL].
func WithCounterTTL(ttl time.Duration) Option {
	return option(func(s *settings) error {
		if ttl < minCounterTTL || ttl > maxCounterTTL {
			return fmt.Errorf("%w: counter TTL %v, %v to %v are allowed", store.ErrInvalidOption, ttl, minCounterTTL, maxCounterTTL)
		}
		s.counterTTL = ttl
		return nil
	})
}

// WithLazyDial has [Open] and [OpenURL] return without a connection, so that a process starts while its server is down. The
// first dial begins at once, in the background. Until a dial succeeds, requests fail with the error that Open would have
// returned: ErrUnreachable, ErrDenied, or ErrInvalidOption for what only a server can refuse. Open itself refuses the other
// options that can't be right.
//
// A request waits for a dial under way, until its context ends. After a failed dial, requests fail at once for 200 ms. The
// next request then dials again. Messages come when a request was answered. A connection that is lost later is
// dialed as without this option.
//
// The options decide about the deployment, because no server can be asked. With a Sentinel.MasterSet they mean Sentinel, with
// one address a single server, and with several a Cluster. List several of a Cluster: with one address, requests for the
// keys of its other servers fail with ErrInvalidOption.
//
// Default: Open dials, and one address may be that of a Cluster. [New] and [NewWith] dial nothing in any case, so the option
// changes nothing for them.
func WithLazyDial() Option {
	return option(func(s *settings) error {
		s.lazy = true
		return nil
	})
}

// WithLogger sets where the store writes messages for operators. It logs when notifications
// stop coming through, and when they come through again. It logs when a server was restarted
// or failed over and grants nothing for a while, and when a server can't be guarded this way.
// Owner ids never appear in the log. A goroutine of its own calls the handler, so a slow
// handler delays nothing. While 1000 records wait for the handler, further records are
// dropped.
//
// Default: warnings and errors go to slog.Default(), whichever it is at that moment. Each message
// is written once a minute at most. [WithoutLogger] silences the store.
func WithLogger(logger *slog.Logger) Option {
	return option(func(s *settings) error { return s.log.Logger(logger) })
}

// WithoutLogger silences the store: nothing is written, not even warnings.
func WithoutLogger() Option {
	return option(func(s *settings) error { return s.log.Nowhere() })
}
