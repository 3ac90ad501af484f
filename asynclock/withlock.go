// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"

	"github.com/asynclock/asynclock-go/internal/failure"
)

// WithLock runs fn under the key: it takes the key as [Client.Lock] does, calls fn, and unlocks,
// also when fn panics. The context of fn is derived from ctx. It also ends when the lease ends,
// with the lease's error as its cause. A request for the same key with this context fails with
// [ErrReentry], or joins the lease with [WithReentry](true).
//
// Whose error it is:
//   - If the key was not taken, fn was not called. The error is that of Lock: an [*Error], mostly [ErrHeld] after
//     [WithWait], [ErrUnreachable], or ctx's own. Neither is fn called if ctx ended at the moment of the grant.
//   - If fn ran under the lease to its end, the error is what fn returned, as it is and not wrapped.
//   - If the lease was lost meanwhile, the error matches [ErrLost], and also what fn returned. It does so even if fn
//     returned nil, because its work may have been too late. A loss that fn returns too is said once. After Close of the client it matches [ErrClosed].
//
// So test for ErrLost first. An fn that calls locks itself may return errors like those of Lock. Set a variable in fn
// to know whether it was called. Other errors of the unlock are no error of WithLock: the lease covered the work, and
// the unlock is repeated in the background.
func (c *Client) WithLock(
	ctx context.Context, key string, fn func(ctx context.Context, lease *Lease) error, options ...LockOption,
) error {
	if fn == nil {
		return &Error{"lock", key, errNilFunction}
	}
	_, err := Do(ctx, c, key, noValue(fn), options...)
	return err
}

// noValue makes fn a function that returns a value.
func noValue[L any](fn func(context.Context, L) error) func(context.Context, L) (struct{}, error) {
	return func(ctx context.Context, lease L) (struct{}, error) { return struct{}{}, fn(ctx, lease) }
}

// Do is [Client.WithLock] for a function that returns a value. If there is an error, the value is
// the one that fn returned with it, or zero if fn was not called.
func Do[T any](
	ctx context.Context, c *Client, key string, fn func(ctx context.Context, lease *Lease) (T, error), options ...LockOption,
) (value T, err error) {
	if fn == nil {
		return value, &Error{"lock", key, errNilFunction}
	}
	lease, err := c.Lock(ctx, key, options...)
	if err != nil {
		return value, err
	}
	return underLease(ctx, lease, fn)
}

// A scope is what a function runs under.
type scope interface {
	Unlock(ctx context.Context) error
	// scope returns ctx, made to end with the lease as well.
	scope(ctx context.Context) (context.Context, context.CancelFunc)
	// refused returns an error of the request for the lease.
	refused(err error) error
}

// underLease calls fn under a lease, and unlocks it.
func underLease[L scope, T any](ctx context.Context, lease L, fn func(ctx context.Context, lease L) (T, error)) (value T, err error) {
	defer func() {
		// Other errors of Unlock concern the store only. The lease covered the work, and the
		// release continues in the background.
		if unlockErr := lease.Unlock(ctx); errors.Is(unlockErr, ErrLost) || errors.Is(unlockErr, ErrClosed) {
			err = failure.Both(err, unlockErr)
		}
	}()
	if ctx.Err() != nil { // it ended when the grant came; the caller may have given up already
		return value, lease.refused(waitEnded(ctx))
	}
	fnCtx, cancel := lease.scope(ctx)
	defer cancel()
	return fn(fnCtx, lease)
}

func (l *Lease) refused(err error) error { return &Error{"lock", l.Key(), err} }

// scope returns ctx, made to end with the lease as well.
func (l *Lease) scope(ctx context.Context) (context.Context, context.CancelFunc) {
	// A context that is cancelled calls its parent. This context stands between the lease's and the
	// caller's, because the caller's may be the application's own type.
	sh := l.state.shard
	sh.mu.Lock()
	ctx = l.holdLocked().values(ctx)
	sh.mu.Unlock()
	between, cancel := context.WithCancel(ctx)
	scoped := newLeaseContext(between, l)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// endedLocked itself calls it. A goroutine that waits for the lease's own context would be
	// another one that may run late.
	l.moreLocked().fnCancel = scoped.cancel
	if l.core.Err != nil {
		scoped.cancel(l.core.Err)
	}
	return scoped, cancel
}

// WithLockAll is [Client.WithLock] for several keys: it takes them as [Client.LockAll] does, calls
// fn, and unlocks, also when fn panics. The context of fn is derived from ctx. It also ends when the
// lease ends, with the lease's error as its cause. A request for one of the keys with this context
// fails with [ErrReentry], or joins the lease of that key with [WithReentry](true).
//
// The error is fn's, or that of LockAll. If a key was lost while fn ran, the error also matches
// [ErrLost], even if fn returned nil.
func (c *Client) WithLockAll(
	ctx context.Context, keys []string, fn func(ctx context.Context, lease *MultiLease) error, options ...LockOption,
) error {
	if fn == nil {
		return &Error{Op: "lock all", Err: errNilFunction}
	}
	lease, err := c.LockAll(ctx, keys, options...)
	if err != nil {
		return err
	}
	_, err = underLease(ctx, lease, noValue(fn))
	return err
}

func (m *MultiLease) refused(err error) error { return &Error{Op: "lock all", Err: err} }
