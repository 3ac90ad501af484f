// SPDX-License-Identifier: Apache-2.0

package asynclocktest

import (
	"context"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

var _ store.ObserveSession = (*session)(nil)

// Observe returns [asynclock.ErrUnsupported] if the inner store has no announcements. Faults do not apply to it, but
// to the events that follow.
func (c *session) Observe(key string, on bool) error {
	inner, ok := c.inner.(store.ObserveSession)
	if !ok {
		return asynclock.ErrUnsupported
	}
	return inner.Observe(key, on)
}

// AnnounceEnd returns [asynclock.ErrUnsupported] if the inner store has no announcements.
func (c *session) AnnounceEnd(ctx context.Context, key string, token int64) error {
	inner, ok := c.inner.(store.ObserveSession)
	if !ok {
		return asynclock.ErrUnsupported
	}
	_, err := single(ctx, c, Call{Op: AnnounceEnd, Key: key}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, inner.AnnounceEnd(ctx, key, token)
	})
	return err
}
