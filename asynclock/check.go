// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"fmt"
	"unicode/utf8"
)

var (
	errNilContext  = fmt.Errorf("%w: nil context", ErrInvalidOption)
	errNilFunction = fmt.Errorf("%w: nil function", ErrInvalidOption)
	errNoClient    = fmt.Errorf("%w: the client was not made by New", ErrInvalidOption)
	errNoLease     = fmt.Errorf("%w: the lease was not made by a client", ErrInvalidOption)
)

// check returns an error if the client was not made by [New], or ctx is nil.
func (c *Client) check(ctx context.Context) error {
	switch {
	case !c.isUsable():
		return errNoClient
	case ctx == nil:
		return errNilContext
	}
	return nil
}

// isUsable reports whether the client was made by [New].
func (c *Client) isUsable() bool { return c != nil && c.session != nil }

// spell returns the key that stands for all that are one lock with this one in the store.
func (c *Client) spell(key string) string {
	if c == nil || c.spelling == nil {
		return key
	}
	return c.spelling.Spell(key)
}

// isNone reports whether l is nil or the zero Lease.
func (l *Lease) isNone() bool { return l == nil || l.leaseCore == nil }

// checkKey reports whether key can name a lock in every store.
func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: empty", ErrInvalidKey)
	case len(key) > MaxKeyLen:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrInvalidKey, len(key), MaxKeyLen)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: not UTF-8", ErrInvalidKey)
	}
	return nil
}
