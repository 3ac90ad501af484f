// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/store"
)

const (
	// DefaultTTL is what a RedisLockRegistry asks for unless it was told
	// otherwise. The TTL of a Go client is asynclock's to choose; one that shares
	// its keys with Java may want the same:
	//
	//	asynclock.New(store, asynclock.WithTTL(springredis.DefaultTTL))
	DefaultTTL = time.Minute
	// DefaultPollInterval is the pause between two polls without [WithPollInterval], as
	// in Java.
	DefaultPollInterval = 100 * time.Millisecond

	minPollInterval = time.Millisecond
	maxPollInterval = time.Minute
)

// A LockType is how waiters learn that a key is free, like Java's RedisLockType. Clients of
// both types exclude each other, and both types announce releases. The type only decides how
// this store's clients wait.
type LockType int

const (
	// SpinLock polls: SPIN_LOCK, the default in both languages.
	SpinLock LockType = iota
	// PubSubLock subscribes to the registry's channels: PUB_SUB_LOCK. It still polls, ten
	// times more rarely, because holders that crash or spin send no message.
	PubSubLock
)

// String returns the name of the Java constant.
func (t LockType) String() string {
	switch t {
	case SpinLock:
		return "SPIN_LOCK"
	case PubSubLock:
		return "PUB_SUB_LOCK"
	}
	return fmt.Sprintf("LockType(%d)", int(t))
}

// An Option configures a [Store], in [Open] and [New].
type Option interface {
	apply(*settings) error
}

type option func(*settings) error

func (o option) apply(s *settings) error { return o(s) }

type settings struct {
	lockType     LockType
	pollInterval time.Duration
	log          asynclog.Choice
}

func newSettings(opts []Option) (settings, error) {
	s := settings{pollInterval: DefaultPollInterval}
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

// WithLockType sets how waiters wait: setRedisLockType. Default [SpinLock].
func WithLockType(t LockType) Option {
	return option(func(s *settings) error {
		if t != SpinLock && t != PubSubLock {
			return fmt.Errorf("%w: %v", store.ErrInvalidOption, t)
		}
		s.lockType = t
		return nil
	})
}

// WithPollInterval sets the pause between two polls of a waiter, give or take a third:
// setIdleBetweenTries. It is from 1 ms to a minute. With [PubSubLock] the pause is ten
// times as long while notifications come through. Default [DefaultPollInterval].
func WithPollInterval(interval time.Duration) Option {
	return option(func(s *settings) error {
		if interval < minPollInterval || interval > maxPollInterval {
			return fmt.Errorf("%w: poll interval %v, %v to %v are allowed", store.ErrInvalidOption, interval, minPollInterval, maxPollInterval)
		}
		s.pollInterval = interval
		return nil
	})
}

// WithLogger sets where the store writes what an operator may want to know: which command
// releases, that messages don't come through, and that they do again. Owner ids never appear
// in it. A goroutine of its own calls the handler, so a slow handler delays nothing. While
// 1000 records wait for the handler, further records are dropped.
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
