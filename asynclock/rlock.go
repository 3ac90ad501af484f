// SPDX-License-Identifier: Apache-2.0

package asynclock

import "context"

// RLock takes the key together with other readers, and waits for it as long as ctx lasts, or as long as
// [WithWait] says. Readers in all processes hold the key at the same time. [Client.Lock] is the writer,
// and excludes everyone.
//
// The lock is fair. Readers and writers are served in the order in which their clients queued, and
// readers next to each other in the queue get the key together. Once a client has heard of a writer that
// waits, its later readers queue behind that writer. It hears of it by a notification, and within five
// seconds if that is lost.
//
// The readers of a client share one holding in the store. While nobody waits elsewhere, one more reader
// costs no round trip. Readers have a holding of their own if they differ in their options, are not
// renewed ([WithRenewal]), or have [WithMaxHold]. A client requests such holdings one after the other, except that one
// request serves all who wait for the same maximum hold. [WithRetention] makes reading cheap: the key stays
// with the client until a writer requests it.
//
// If ctx was made under a lease of the same key that still lasts, RLock fails at once with [ErrReentry]. A writer that
// queued in between would otherwise wait for the outer reader, and the inner one for that writer. With
// [WithReentry](true) the new lease joins the outer one. Under a lease of RLock, Lock fails with [ErrUpgrade] in any case.
//
// Errors: those of Lock, and [ErrUnsupported] from a store that has no readers ([store.Features]).
// [WithMinHold] is refused with [ErrInvalidOption].
func (c *Client) RLock(ctx context.Context, key string, options ...LockOption) (*Lease, error) {
	return c.lock(newReader(ctx), "rlock", key, options)
}

// TryRLock is [Client.RLock] without waiting. If a writer holds the key, or anybody is ahead in its
// queue, the error is [ErrHeld], as a [*HeldError]. The other errors are those of RLock.
func (c *Client) TryRLock(ctx context.Context, key string, options ...LockOption) (*Lease, error) {
	w := newReader(ctx)
	w.Try = true
	return c.lock(w, "try rlock", key, options)
}

// RLockChan is [Client.RLock] as a future. All that [Client.LockChan] says holds for it.
func (c *Client) RLockChan(ctx context.Context, key string, options ...LockOption) <-chan Result {
	return c.future(newReader(ctx), key, options)
}

// WithRLock is [Client.WithLock] for a reader.
func (c *Client) WithRLock(
	ctx context.Context, key string, fn func(ctx context.Context, lease *Lease) error, options ...LockOption,
) error {
	if fn == nil {
		return &Error{"rlock", key, errNilFunction}
	}
	lease, err := c.RLock(ctx, key, options...)
	if err != nil {
		return err
	}
	_, err = underLease(ctx, lease, noValue(fn))
	return err
}

// newReader makes a waiter for a reader's lease.
func newReader(ctx context.Context) *waiter {
	w := newWaiter(ctx)
	w.mode = Shared
	return w
}
