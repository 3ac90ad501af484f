// SPDX-License-Identifier: Apache-2.0

package asynclock

import "context"

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
