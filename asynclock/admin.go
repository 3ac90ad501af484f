// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
)

// Inspect returns the holder of the key and its waiters, as the store knows them. If the waiters of
// one client pass a key on without the store, Info shows the client's holding as a whole. Info
// promises nothing: it may be outdated by the time it is read.
//
// Errors: ctx's own, [ErrUnreachable], [ErrOutcomeUnknown], [ErrClosed], [ErrInvalidKey],
// [ErrInvalidOption], [ErrForeignData], [ErrDenied].
func (c *Client) Inspect(ctx context.Context, key string) (Info, error) {
	if err := c.checkCall(ctx, key); err != nil {
		return Info{}, &Error{"inspect", key, err}
	}
	info, err := c.session.Inspect(ctx, c.spell(key))
	if err != nil {
		return Info{}, &Error{"inspect", key, err}
	}
	info.Mine = c.has(&info)
	return info, nil
}

// has reports whether the holding that a store describes is this client's.
func (c *Client) has(info *Info) bool {
	if !info.Held {
		return false
	}
	key := c.spell(info.Key) // a listing has what others may have written
	sh := c.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.keys[key]
	return s != nil && s.machine.Has(info.Mode, info.Token)
}

// List yields every key with the given prefix that is held or waited for, by any client. The empty
// prefix selects all keys. List reads the store page by page and never blocks it. Keys that come or
// go meanwhile may be missing. The errors are those of [Client.Inspect]. One with an Info that has a Key is about
// that key alone, as [ErrForeignData] is, and List goes on. After any other error it ends.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := c.checkOpen(ctx)
		if err == nil && (len(prefix) > MaxKeyLen || !utf8.ValidString(prefix)) {
			err = fmt.Errorf("%w: no key has this prefix", ErrInvalidKey)
		}
		if err != nil {
			yield(Info{}, &Error{"list", prefix, err})
			return
		}
		for info, err := range c.session.List(ctx, prefix) {
			switch {
			case err == nil:
				info.Mine = c.has(&info)
			case info.Key == "":
				yield(Info{}, &Error{"list", prefix, err})
				return
			default:
				err = &Error{"list", info.Key, err}
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// ForceUnlock takes the key from its holder, or from all who share it, and gives it to the next waiter. The holder's lease
// ends with [ErrForced] when its client was notified and the store has confirmed it, which may be after the next lease has
// begun. Then only the token, which is larger for the next holder, tells the two apart. ForceUnlock
// reports whether anyone held the key.
//
// The token says whom the call is about. It is the one in [Info] or [HeldError]. If the holder's
// token is another by now, nothing changes, and the error is an [*HeldError], which says who holds
// the key. So a call that had no answer can be repeated: it never takes the key from the next
// holder, whose token is larger.
//
// Inspect shows the last token that the holder's client has written to the store. A client that
// passes the key on among its own waiters writes a larger one with its next renewal. A call about
// the smaller one is then refused, although the same client still has the key. The error shows the
// new token.
//
// Token 0 means whoever holds the key. Such a call is not repeatable: if its answer was lost, the
// key may belong to the next holder already. Only token 0 frees a key whose holder has no token, so
// that Info shows 0: a holder in Java, in the Redis or the table that it shares with Go.
//
// The next tokens must be larger than any token that the holder may still give out. They may
// therefore run ahead of the server's clock for as long as the holder's TTL had to run. Until then
// clients do not pass the key on among their own waiters. If a store in Redis loses its data during
// this time, the key's tokens fall back to the clock. A resource that has seen larger tokens then
// refuses the next holders for as long.
//
// The other errors are those of [Client.Inspect]. After [ErrUnreachable] nothing was done. After
// [ErrOutcomeUnknown], or the error of ctx, the key may have been taken. A token below 0, or above it
// in a store without tokens ([store.Features]), is [ErrInvalidOption].
func (c *Client) ForceUnlock(ctx context.Context, key string, token int64) (bool, error) {
	if err := c.checkForce(ctx, key, token); err != nil {
		return false, &Error{"force unlock", key, err}
	}
	key = c.spell(key)
	held, err := c.session.Force(ctx, key, token)
	var other *store.OtherHolderError
	if errors.As(err, &other) {
		return false, &Error{"force unlock", key, newOtherHolderError(key, token, &other.Info)}
	}
	c.releaseRetained(key)
	if err != nil {
		return false, &Error{"force unlock", key, err}
	}
	return held, nil
}

// An otherHolderError is a HeldError whose text compares the tokens.
type otherHolderError struct {
	*HeldError

	meant int64 // the token that the caller gave
}

func newOtherHolderError(key string, meant int64, info *Info) *otherHolderError {
	return &otherHolderError{&HeldError{
		Key: key, Holder: info.Holder, Token: info.Token, Remaining: info.Remaining, Waiters: info.Waiters,
	}, meant}
}

func (e *otherHolderError) Error() string {
	without := ""
	if e.Token == 0 {
		without = " without a token"
	}
	return fmt.Sprintf("%s%s, not with token %d", e.HeldError.Error(), without, e.meant)
}

// Unwrap returns the HeldError.
func (e *otherHolderError) Unwrap() error { return e.HeldError }

func (c *Client) checkForce(ctx context.Context, key string, token int64) error {
	err := c.checkCall(ctx, key)
	switch {
	case err != nil:
		return err
	case token < 0:
		return fmt.Errorf("%w: token %d is negative", ErrInvalidOption, token)
	case token > 0 && !c.features.Tokens:
		return fmt.Errorf("%w: token %d: this store has no tokens, so only 0 is possible", ErrInvalidOption, token)
	}
	return nil
}

// releaseRetained gives the key back if this client retains it. After a force, nobody in this
// client may take the key again before the notification of the force has come.
func (c *Client) releaseRetained(key string) {
	sh := c.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.keys[key]
	if s == nil || !s.machine.Retained() {
		return
	}
	st := s.stepNow()
	s.machine.ReleaseRetained(&st)
	s.carryOutLocked(&st)
}

func (c *Client) checkCall(ctx context.Context, key string) error {
	if err := c.checkOpen(ctx); err != nil {
		return err
	}
	return checkKey(key)
}

func (c *Client) checkOpen(ctx context.Context) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	if c.closing.Load() {
		return ErrClosed
	}
	return nil
}

// A Store is where clients keep their locks: see the packages below store. Its methods are for clients, not for their users.
type Store = store.Store

// Info describes a key, as [Client.Inspect] and [Client.List] find it: whether it is Held, by which Holder, with which
// Token, for how long the TTL is Remaining, and how many are Waiters. [store.Info] has all fields.
type Info = store.Info

// A Mode says how much of its key a lease has: see [Lease.Mode].
type Mode = store.Mode

// The modes of a [Lease].
const (
	Exclusive = store.Exclusive // of Lock: all of it
	Shared    = store.Shared    // of RLock: a part, beside any number of other readers
	Permits   = store.Permits   // of a Semaphore: some of its permits
)

// WaiterInfo describes one queued client.
type WaiterInfo = store.WaiterInfo
