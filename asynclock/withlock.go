// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
)

// WithLock runs fn under the key: it takes the key as [Client.Lock] does, calls
// fn, and unlocks, also when fn panics. The context that fn gets is ctx, ended
// also when the lease does, with the lease's error as its cause; asking for the
// same key with it joins the lease.
//
// The error is fn's, or that of Lock. If the lease was lost while fn ran, it is
// also [ErrLost], even if fn returned nil.
func (c *Client) WithLock(
	ctx context.Context, key string, fn func(ctx context.Context, lease *Lease) error, options ...LockOption,
) error {
	_, err := Do(ctx, c, key, func(ctx context.Context, lease *Lease) (struct{}, error) {
		return struct{}{}, fn(ctx, lease)
	}, options...)
	return err
}

// Do is [Client.WithLock] for a function that returns a value. With an error
// the value is what fn returned beside it, or zero if fn was not called.
func Do[T any](
	ctx context.Context, c *Client, key string, fn func(ctx context.Context, lease *Lease) (T, error), options ...LockOption,
) (value T, err error) {
	lease, err := c.Lock(ctx, key, options...)
	if err != nil {
		return value, err
	}
	defer func() {
		// What Unlock says besides a loss is about the store; the work was
		// covered, and the release goes on in the background.
		if unlockErr := lease.Unlock(ctx); errors.Is(unlockErr, ErrLost) || errors.Is(unlockErr, ErrClosed) {
			err = errors.Join(err, unlockErr)
		}
	}()
	fnCtx, cancel := lease.scope(ctx)
	defer cancel()
	return fn(fnCtx, lease)
}

// scope returns ctx, made to end with the lease too.
func (l *Lease) scope(ctx context.Context) (context.Context, context.CancelFunc) {
	// A context that is cancelled takes its leave of its parent. This one stands between
	// the lease's and the caller's, which may be the application's code.
	between, cancel := context.WithCancel(ctx)
	scoped := newLeaseContext(between, l)
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// Called by endLocked itself: a goroutine that waits for the lease's own
	// context would be one more that may run late.
	l.fnCancel = scoped.cancel
	if l.err != nil {
		scoped.cancel(l.err)
	}
	return scoped, cancel
}
