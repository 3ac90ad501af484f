// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
)

// Limits and defaults. Durations are enforced by [New] and by each call that
// takes options.
const (
	// DefaultTTL is the TTL without [WithTTL].
	DefaultTTL = store.DefaultTTL
	// MinTTL and MaxTTL bound what [WithTTL] and [Lease.Renew] take.
	MinTTL = store.MinTTL
	MaxTTL = store.MaxTTL
	// DefaultQueueLimit is the limit without [WithQueueLimit].
	DefaultQueueLimit = 16384
	// MaxKeyLen is the longest key, in bytes of UTF-8.
	MaxKeyLen = store.MaxKeyLen
	// MaxHolderLen is the longest description for [WithHolder], in bytes.
	MaxHolderLen = store.MaxDescriptionLen

	longestHold = 10 * 365 * 24 * time.Hour // far from where durations overflow
)

// A ClientOption configures a [Client], in [New].
type ClientOption interface {
	applyClient(*clientSettings) error
}

// A LockOption configures one acquisition. Given to [New] it sets the default
// for every acquisition of that client.
type LockOption interface {
	ClientOption
	applyLock(*lockSettings) error
}

// lockSettings is what one acquisition is made with. It is comparable: a lease
// passes from waiter to waiter inside a client only between equal settings.
type lockSettings struct {
	ttl        time.Duration
	maxHold    time.Duration // 0: no bound
	minHold    time.Duration
	retention  time.Duration // 0: none
	renew      bool
	queueLimit int
	holder     string
}

type clientSettings struct {
	lock   lockSettings
	logger *slog.Logger // nil: nothing is logged
}

func defaultSettings() clientSettings {
	return clientSettings{
		lock: lockSettings{
			ttl:        DefaultTTL,
			renew:      true,
			queueLimit: DefaultQueueLimit,
			holder:     defaultHolder(),
		},
	}
}

// defaultHolder says where to look for the holder: program, host and process.
func defaultHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	text := fmt.Sprintf("%s@%s pid %d", filepath.Base(os.Args[0]), host, os.Getpid())
	if checkHolder(text) != nil { // a host or program name from another world
		return fmt.Sprintf("pid %d", os.Getpid())
	}
	return text
}

type lockOption func(*lockSettings) error

func (o lockOption) applyLock(s *lockSettings) error     { return o(s) }
func (o lockOption) applyClient(s *clientSettings) error { return o(&s.lock) }

type clientOption func(*clientSettings) error

func (o clientOption) applyClient(s *clientSettings) error { return o(s) }

// WithTTL sets how long the store keeps a lease that is not renewed. The
// watchdog renews each third of it, and the lease's context ends a little over
// a tenth before it. Short TTLs free a dead holder's key sooner and survive
// shorter outages of the store. Default [DefaultTTL]; from [MinTTL] to
// [MaxTTL].
func WithTTL(ttl time.Duration) LockOption {
	return lockOption(func(s *lockSettings) error {
		if err := checkTTL(ttl); err != nil {
			return err
		}
		s.ttl = ttl
		return nil
	})
}

func checkTTL(ttl time.Duration) error {
	if ttl < MinTTL || ttl > MaxTTL {
		return fmt.Errorf("%w: TTL %v is outside %v to %v", ErrBadOption, ttl, MinTTL, MaxTTL)
	}
	return nil
}

// WithMaxHold ends the lease, with [ErrMaxHold], when it has been held for d,
// so that a stuck holder does not keep a key for ever. Waiters of the same
// process are served no later than others. Default: 0, no bound; otherwise from
// [MinTTL] to ten years.
func WithMaxHold(d time.Duration) LockOption {
	return lockOption(func(s *lockSettings) error {
		if d != 0 && (d < MinTTL || d > longestHold) {
			return fmt.Errorf("%w: maximum hold %v is outside %v to %v", ErrBadOption, d, MinTTL, longestHold)
		}
		s.maxHold = d
		return nil
	})
}

// WithMinHold keeps the key from everyone until d has passed since the lease
// was claimed, even after Unlock, which returns at once. It serves a job that
// must run at most once per interval. It also holds when the lease ends by
// WithMaxHold (the store, if it is silent then, is asked again while the TTL lasts),
// but not when it is lost in another way: then nobody may be there to keep the key.
// Default: none; at most [MaxTTL].
func WithMinHold(d time.Duration) LockOption {
	return lockOption(func(s *lockSettings) error {
		if d < 0 || d > MaxTTL {
			return fmt.Errorf("%w: minimum hold %v is outside 0 to %v", ErrBadOption, d, MaxTTL)
		}
		s.minHold = d
		return nil
	})
}

// WithRetention keeps the key with this client for up to d after the last Unlock,
// though nobody holds it, so that taking it again here, on the same terms, costs
// no round trip. Unlock then returns at once. Each lease is a new one all the
// same, with a larger token. It serves a client that takes the same keys over
// and over while others seldom want them.
//
// The key is given back when another client asks for it, be it by Lock or by
// TryLock (which is patient for some milliseconds for that), when
// d is over, and by [Client.Close]. Until then it is renewed like a held key, and
// everyone else sees it as held, also in Inspect and List; ForceUnlock takes it.
// If the client dies, others wait for its TTL, as they would for a holder's.
//
// No key is retained that others want already, that [WithMinHold] keeps back, or
// that is not renewed; nor while the store's messages don't come through, or by a
// store that can't tell who wants a key ([Features]): then Unlock gives it back as
// it always does. Nor one whose [WithMaxHold] is so short that little
// trust is ever left for the next lease: less than 0.85 s with the default TTL.
//
// It has its price, and these are the terms:
//
//   - A key that is used once is kept, and renewed at least every five seconds, for all of d.
//     Retain keys that are taken over and over, not each of a million.
//   - Clients that ask must be of a version that tells the holder so, and be allowed
//     to publish. A TryLock of others fails for as long as the key is retained; their
//     Lock waits for a renewal, at most some five seconds.
//   - A TryLock against a client that has the key busy may be refused more often than
//     without retention. Lock takes its turn.
//   - Each TryLock that is refused a key held by a client that retains costs the
//     server a message. Poll with Lock, or LockChan.
//   - While a key is given back, which takes a round trip, a TryLock of the same
//     client may be refused it with [ErrHeld], though nobody holds it.
//   - After a ForceUnlock by another client whose message is lost, this client goes on
//     to take the key again until a renewal finds out, within a third of the TTL: its
//     leases are trusted meanwhile, and only the token tells them apart. And its
//     Unlock, and so [Client.WithLock], may return nil where the store would have
//     said that the key was lost.
//
// Default: 0, none; at most [MaxTTL].
func WithRetention(d time.Duration) LockOption {
	return lockOption(func(s *lockSettings) error {
		if d < 0 || d > MaxTTL {
			return fmt.Errorf("%w: retention %v is outside 0 to %v", ErrBadOption, d, MaxTTL)
		}
		s.retention = d
		return nil
	})
}

// WithoutRenewal keeps the watchdog away: the lease ends by itself, with
// [ErrExpired], a little before its TTL, unless [Lease.Renew] extends it.
func WithoutRenewal() LockOption {
	return lockOption(func(s *lockSettings) error {
		s.renew = false
		return nil
	})
}

// WithRenewal undoes WithoutRenewal, for a call to a client that has it.
func WithRenewal() LockOption {
	return lockOption(func(s *lockSettings) error {
		s.renew = true
		return nil
	})
}

// WithQueueLimit refuses an acquisition with [ErrQueueFull] when n are waiting
// for the key already: n in this client, or n clients in the store. A caller
// whose first request is under way counts as waiting. Default
// [DefaultQueueLimit].
func WithQueueLimit(n int) LockOption {
	return lockOption(func(s *lockSettings) error {
		if n < 1 {
			return fmt.Errorf("%w: queue limit %d is below 1", ErrBadOption, n)
		}
		s.queueLimit = n
		return nil
	})
}

// WithHolder sets the description that others see of the holder and waiter, in
// [HeldError], Inspect and List. It is for people, is stored as it is, and
// proves nothing. Default: program, host and process id. At most
// [MaxHolderLen] bytes of printable UTF-8.
func WithHolder(description string) LockOption {
	return lockOption(func(s *lockSettings) error {
		if err := checkHolder(description); err != nil {
			return err
		}
		s.holder = description
		return nil
	})
}

func checkHolder(description string) error {
	if len(description) > MaxHolderLen || !utf8.ValidString(description) {
		return fmt.Errorf("%w: holder must be UTF-8 of at most %d bytes", ErrBadOption, MaxHolderLen)
	}
	for _, r := range description {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%w: holder has the unprintable character %q", ErrBadOption, r)
		}
	}
	return nil
}

// WithLogger sets where the client writes what an operator may want to know:
// losses, and waits and releases that failed, as warnings; renewals that failed
// and stale messages at debug level. Keys and tokens appear in it, owner ids
// never. It is
// called by a goroutine that nothing else depends on, in order, and may block.
// Default: nothing is written.
func WithLogger(logger *slog.Logger) ClientOption {
	return clientOption(func(s *clientSettings) error {
		if logger == nil {
			return fmt.Errorf("%w: nil logger", ErrBadOption)
		}
		s.logger = logger
		return nil
	})
}

// with returns the settings changed by options.
func (s lockSettings) with(options []LockOption) (lockSettings, error) {
	for _, o := range options {
		if o == nil {
			return s, fmt.Errorf("%w: nil option", ErrBadOption)
		}
		if err := o.applyLock(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

var errNilContext = fmt.Errorf("%w: nil context", ErrBadOption)

// checkKey reports whether key can name a lock in every store.
func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: empty", ErrBadKey)
	case len(key) > MaxKeyLen:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrBadKey, len(key), MaxKeyLen)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: not UTF-8", ErrBadKey)
	}
	return nil
}
