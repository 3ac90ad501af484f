// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// The holder's client is asked for a key that it retains, and the try that asked may end before it asks again. Those
// behind it still have an answer.
func TestTryBehindOneThatDoesNotAskAgain(t *testing.T) {
	for name, first := range map[string]func(c *asynclock.Client) acquire{
		"TryLock": func(c *asynclock.Client) acquire { return c.TryLock },
		"TryLockAll": func(c *asynclock.Client) acquire {
			return func(ctx context.Context, key string, _ ...asynclock.LockOption) (*asynclock.Lease, error) {
				_, err := c.TryLockAll(ctx, []string{key})
				return nil, err
			}
		},
		"a future": func(c *asynclock.Client) acquire {
			return func(ctx context.Context, key string, _ ...asynclock.LockOption) (*asynclock.Lease, error) {
				return (<-c.LockChan(ctx, key, asynclock.WithWait(0))).Lease()
			}
		},
	} {
		for when, after := range map[string]time.Duration{
			"under way": roundTrip / 2, "pausing": roundTrip + time.Millisecond, "asking again": 3*roundTrip + time.Millisecond,
		} {
			scene(t, name+" "+when, func(w *world) {
				holder, c := w.client(), w.client()
				l := lock(w, holder, "key", asynclock.WithRetention(time.Minute))
				defer unlock(w, l) // it is not retained yet
				w.store.Every(asynclocktest.Match(asynclocktest.Any).From(1), asynclocktest.Slow(roundTrip/2, roundTrip/2))
				ctx, cancel := context.WithTimeout(w.Context(), after)
				defer cancel()
				go func() { _, _ = first(c)(ctx, "key") }()
				time.Sleep(after - time.Millisecond)
				bounded, done := context.WithTimeout(w.Context(), time.Minute)
				defer done()
				begun := time.Now()
				_, err := c.TryLock(bounded, "key")
				if took := time.Since(begun); !errors.Is(err, asynclock.ErrHeld) || took > 10*roundTrip {
					w.Errorf("got error %v after %v, want ErrHeld after a few round trips", err, took)
				}
			})
		}
	}
}
