// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	t.Parallel()
	notYet := errors.New("still loading")

	t.Run("until the answer is yes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			err := Await(t.Context(), "it", func(context.Context) error {
				if time.Since(begin) < 5*time.Second {
					return notYet
				}
				return nil
			})
			if err != nil {
				t.Errorf("got %v, want nil", err)
			}
		})
	})
	t.Run("the limit reports the last answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			err := Await(t.Context(), "it", func(ctx context.Context) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return notYet
			})
			if !errors.Is(err, notYet) || !strings.Contains(err.Error(), "it: not so") {
				t.Errorf("got %v, want %v", err, notYet)
			}
			if took := time.Since(begin); took != readyLimit {
				t.Errorf("took %v, want %v", took, readyLimit)
			}
		})
	})
	t.Run("a dead server is not waited for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			err := Await(t.Context(), "it", func(context.Context) error { return fmt.Errorf("%w: bind", errEnded) })
			if !errors.Is(err, errEnded) || time.Since(begin) != 0 {
				t.Errorf("got %v after %v, want %v at once", err, time.Since(begin), errEnded)
			}
		})
	})
	t.Run("an order to stop ends it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stop := errors.New("stopped")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(stop) })
			err := Await(ctx, "it", func(context.Context) error { return notYet })
			if !errors.Is(err, stop) {
				t.Errorf("got %v, want %v", err, stop)
			}
		})
	})
}
