// SPDX-License-Identifier: Apache-2.0

package asynclocktest

import (
	"context"
	"fmt"

	"github.com/asynclock/asynclock-go/store"
)

var _ store.LimitSession = (*session)(nil)

// SetLimit passes the limit to a store that has Features.Limits.
func (c *session) SetLimit(ctx context.Context, key string, limit int32) error {
	_, err := single(ctx, c, Call{Op: SetLimit, Key: key}, func(ctx context.Context) (struct{}, error) {
		inner, ok := c.inner.(store.LimitSession)
		if !ok {
			return struct{}{}, fmt.Errorf("%w: limits of permits", store.ErrUnsupported)
		}
		return struct{}{}, inner.SetLimit(ctx, key, limit)
	})
	return err
}
