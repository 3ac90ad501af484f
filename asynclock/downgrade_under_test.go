// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// The context of WithLock's function, and that of the lease, end with the lease. A downgrade is not their end.
func TestADowngradeByTheContextOfItsLease(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Refuse) // it is repeated all the same
		err := c.WithLock(w.Context(), "key", func(ctx context.Context, lease *asynclock.Lease) error {
			reader, err := lease.Downgrade(ctx)
			if err != nil {
				return err
			}
			wantValid(w, reader)
			if !errors.Is(context.Cause(ctx), asynclock.ErrUnlocked) {
				w.Errorf("the context of the writer's lease: got cause %v, want ErrUnlocked", context.Cause(ctx))
			}
			return reader.Unlock(context.WithoutCancel(ctx))
		})
		wantError(w, err, nil)
		if err != nil {
			w.Fatal(err)
		}
		w.wantUnused()
		outer := lock(w, c, "outer")
		inner, err := c.Lock(outer.Context(), "inner")
		if err != nil {
			w.Fatal(err)
		}
		reader, err := outer.Downgrade(inner.Context())
		if err != nil {
			w.Fatal(err)
		}
		unlock(w, reader)
		unlock(w, inner)
	})
}
