// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
)

// Limits and defaults. [New], and each call that takes options, check the durations.
const (
	// DefaultTTL is the TTL of a lease without [WithTTL]: 15 s.
	DefaultTTL = store.DefaultTTL
	// MinTTL and MaxTTL are the bounds of [WithTTL] and [Lease.Renew]: 100 ms and 24 h.
	MinTTL = store.MinTTL
	MaxTTL = store.MaxTTL
	// DefaultQueueLimit is the limit without [WithQueueLimit].
	DefaultQueueLimit = 16384
	// MaxKeyLen is the longest key, in bytes of UTF-8: 512.
	MaxKeyLen = store.MaxKeyLen
	// MaxDescriptionLen is the longest description that [WithDescription] takes, in bytes: 128.
	MaxDescriptionLen = store.MaxDescriptionLen
	// MaxClassLen is the longest class that [WithClass] takes, in bytes.
	MaxClassLen = 64
	// DefaultWindow is the window without [WithWindow], and MaxWindow the largest one.
	DefaultWindow = 32
	MaxWindow     = 1024

	longestHold = 10 * 365 * 24 * time.Hour // far from where durations overflow
)

// A LockOption configures one acquisition. Given to [New], it sets the client's default for every
// acquisition.
type LockOption interface {
	ClientOption
	applyLock(*lockSettings) error
}

type lockOption func(*lockSettings) error

func (o lockOption) applyLock(s *lockSettings) error     { return o(s) }
func (o lockOption) applyClient(s *clientSettings) error { return o(&s.lock) }

// WithTTL sets how long the store keeps a lease that is not renewed. The watchdog renews the lease
// every third of the TTL. The lease's context ends a little more than a tenth of the TTL early. A
// short TTL frees a dead holder's key sooner, but survives only short outages of the store. It must
// be at least five times as long as a round trip to the store; otherwise leases may be lost, and the
// log warns of it. Default [DefaultTTL]; from [MinTTL] to [MaxTTL].
func WithTTL(ttl time.Duration) LockOption {
	return lockOption(func(s *lockSettings) error {
		if err := checkTTL(ttl); err != nil {
			return err
		}
		s.TTL = ttl
		s.given |= givenTTL
		return nil
	})
}

func checkTTL(ttl time.Duration) error {
	if ttl < MinTTL || ttl > MaxTTL {
		return fmt.Errorf("%w: TTL %v is outside %v to %v", ErrInvalidOption, ttl, MinTTL, MaxTTL)
	}
	return nil
}

// WithMaxHold ends the lease with [ErrMaxHold] when it has been held for d, so that a stuck holder
// does not keep a key for ever. The store frees the key some d/5 later, or when the holder unlocks.
// Waiters of the same process are served no later than others. Default: 0, no bound; otherwise from
// [MinTTL] to ten years.
func WithMaxHold(d time.Duration) LockOption {
	return lockOption(func(s *lockSettings) error {
		if d != 0 && (d < MinTTL || d > longestHold) {
			return fmt.Errorf("%w: maximum hold %v is outside %v to %v", ErrInvalidOption, d, MinTTL, longestHold)
		}
		s.MaxHold = d
		s.given |= givenMaxHold
		return nil
	})
}

// WithMinHold holds the key back from everyone until d has passed since the caller had the lease, even
// after Unlock, which returns at once. Use it for a job that must run at most once per interval.
//
// The option also applies when WithMaxHold ends the lease. If the store is silent at that moment,
// the client repeats the request while the TTL lasts. The option does not apply when the lease is
// lost in another way, because nobody may be left to keep the key. Default: none; at most [MaxTTL].
func WithMinHold(d time.Duration) LockOption {
	return lockOption(func(s *lockSettings) error {
		if d < 0 || d > MaxTTL {
			return fmt.Errorf("%w: minimum hold %v is outside 0 to %v", ErrInvalidOption, d, MaxTTL)
		}
		s.MinHold = d
		s.given |= givenMinHold
		return nil
	})
}

// WithRetention keeps the key with this client for up to d after the last Unlock, although nobody
// holds it. Taking the key again in this client, on the same terms, then costs no round trip, and
// Unlock returns at once. Each lease is still a new one with a larger token. Use it in a client
// that takes the same keys over and over while others seldom request them.
//
// The key is given back when another client requests it, when d is over, and by [Client.Close].
// Another client may request it by Lock or by TryLock, which tries twice, some milliseconds apart,
// for this purpose. Until then the key is renewed like a held key. Everyone else sees it as held,
// also in Inspect and List, and ForceUnlock takes it. If the client dies, others wait for its TTL,
// as they would wait for a holder's.
//
// In these cases Unlock gives the key back as usual:
//
//   - Others are already waiting for the key.
//   - [WithMinHold] holds the key back.
//   - The lease is not renewed.
//   - The store's notifications do not arrive, or the store can't tell who requests a key
//     ([store.Features]).
//   - [WithMaxHold] is so short that the next lease could never be trusted for long: with the
//     default TTL, less than 0.85 s.
//
// Retention has a price:
//
//   - A key that is used once is kept, and renewed at least every five seconds, for all of d.
//     Retain keys that are taken over and over, not each of a million.
//   - Other clients must be of a version that notifies the holder, and must be allowed to publish.
//     Otherwise their TryLock fails for as long as the key is retained, and their Lock waits for
//     the next renewal, at most some five seconds.
//   - A TryLock against a client that uses the key all the time may be refused more often than
//     without retention. Lock takes its turn.
//   - Each TryLock that is refused a key held by a client that retains costs the server a message.
//     Wait with Lock or LockChan instead of polling.
//   - If the notification of another client's ForceUnlock is lost, this client continues to take
//     the key until a renewal finds out, within a third of the TTL. Its leases are trusted
//     meanwhile, and only the tokens tell the two holders apart. Unlock, and so [Client.WithLock],
//     may then return nil where the store would have reported the loss.
//
// Default: 0, none; at most [MaxTTL].
func WithRetention(d time.Duration) LockOption {
	return lockOption(func(s *lockSettings) error {
		if d < 0 || d > MaxTTL {
			return fmt.Errorf("%w: retention %v is outside 0 to %v", ErrInvalidOption, d, MaxTTL)
		}
		s.Retention = d
		s.given |= givenRetention
		return nil
	})
}

// WithRenewal says whether the watchdog renews the lease. Default true. With false the lease ends
// by itself, with [ErrExpired], a little before its TTL, unless [Lease.Renew] extends it.
func WithRenewal(on bool) LockOption {
	return lockOption(func(s *lockSettings) error {
		s.Renew = on
		s.given |= givenRenewal
		return nil
	})
}

// WithQueueLimit refuses an acquisition with [ErrQueueFull] when n are already waiting for the key:
// n callers in this client, or n clients in the store. A caller whose first request is under way
// counts as waiting. One that never waits does not. The futures of one context count as one. So do the futures of
// all contexts that never end. Those of [Client.LockAllChan] for the same keys do so among
// themselves, and are one caller beside others. Default [DefaultQueueLimit].
func WithQueueLimit(n int) LockOption {
	return lockOption(func(s *lockSettings) error {
		if n < 1 {
			return fmt.Errorf("%w: queue limit %d is below 1", ErrInvalidOption, n)
		}
		s.QueueLimit = n
		return nil
	})
}

// WithWait bounds the wait for the key: after d it fails with [context.DeadlineExceeded]. The error
// also matches what was in the way: [ErrHeld], which says who held the key, [ErrGrace] or [ErrUnreachable].
// If the store has not answered within d, it is ErrUnreachable.
// With 0 the request does not wait at all, and fails with ErrHeld like [Client.TryLock], or with
// ErrUnreachable if the answer was lost. The wait ends with the call's context in any case.
// The function of [Client.WithLock] is not bounded by d. A future that nobody has received from ends after d,
// as it does with its context.
//
// Default: as long as the context lasts; otherwise from 0 to ten years. TryLock never waits: a
// client's default means nothing to it, and a call of TryLock refuses any option but 0.
func WithWait(d time.Duration) LockOption {
	return lockOption(func(s *lockSettings) error {
		if d < 0 || d > longestHold {
			return fmt.Errorf("%w: wait %v is outside 0 to %v", ErrInvalidOption, d, longestHold)
		}
		s.wait = d
		s.given |= givenWait
		return nil
	})
}

// WithWindow sets how many results of a [Client.LockEach] may be pending or not looked at. A window that is larger than
// what is received during a round trip to the store has no use, and keeps more keys from others for a moment. Other
// calls refuse the option with [ErrInvalidOption]. Default [DefaultWindow]; from 1 to [MaxWindow].
func WithWindow(n int) LockOption {
	return lockOption(func(s *lockSettings) error {
		if n < 1 || n > MaxWindow {
			return fmt.Errorf("%w: window %d is outside 1 to %d", ErrInvalidOption, n, MaxWindow)
		}
		s.window = uint16(n)
		s.given |= givenWindow
		return nil
	})
}

// WithReentry says what a request does whose context was made under a lease of the same key that still
// lasts (see [Lease.Context]). Default false: it fails at once with [ErrReentry], because whoever waits for it inside
// the lease would wait in vain.
//
// With true it joins that lease and returns another one, with the same token. The key is given back by the last
// Unlock. Options that differ from those of the lease are refused with [ErrInvalidOption]. Goroutines that join
// one lease are inside together, also work that was detached with [context.WithoutCancel]: the lease excludes others,
// not them.
//
// Only the request's own option counts, not that of the lease. Permits of a [Semaphore] are never joined.
func WithReentry(on bool) LockOption {
	return lockOption(func(s *lockSettings) error {
		s.reentry = on
		return nil
	})
}

// WithDescription sets the description of the holder and waiter that others see in [HeldError], Inspect
// and List. It is meant for people, is stored unchanged, and proves nothing. Default: program, host
// and process id. At most [MaxDescriptionLen] bytes of printable UTF-8.
func WithDescription(description string) LockOption {
	return lockOption(func(s *lockSettings) error {
		if err := checkHolder(description); err != nil {
			return err
		}
		s.Holder = description
		s.given |= givenDescription
		return nil
	})
}

// WithClass says what the key is of, for example "order" of the key "order:42". [Hooks] are told of it, so that metrics
// need not have the key. There should be few classes. It is not sent to the store. From 1 to [MaxClassLen] bytes of
// printable UTF-8. Default: none.
func WithClass(class string) LockOption {
	return lockOption(func(s *lockSettings) error {
		if class == "" || len(class) > MaxClassLen || !isPrintable(class) {
			return fmt.Errorf("%w: a class must be printable UTF-8 of 1 to %d bytes", ErrInvalidOption, MaxClassLen)
		}
		s.class = &class
		return nil
	})
}

// className returns the class, or nothing.
func (s *lockSettings) className() string {
	if s.class == nil {
		return ""
	}
	return *s.class
}

func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func checkHolder(description string) error {
	if len(description) > MaxDescriptionLen || !utf8.ValidString(description) {
		return fmt.Errorf("%w: a description must be UTF-8 of at most %d bytes", ErrInvalidOption, MaxDescriptionLen)
	}
	for _, r := range description {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%w: the description has the unprintable character %q", ErrInvalidOption, r)
		}
	}
	return nil
}
