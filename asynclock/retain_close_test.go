// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// A key that nobody held delays Close by at most its grace if the store is gone. A key that was
// just unlocked would delay it for the TTL.
func TestCloseDoesNotWaitForWhatIsRetained(t *testing.T) {
	const most = 3 * time.Second // a grace each for the releases, the goroutines and the session
	for name, ttl := range map[string]time.Duration{"default TTL": ttl, "long TTL": time.Hour} {
		scene(t, name, func(w *world) {
			c := w.retainer(asynclock.WithTTL(ttl))
			w.retained(c)
			w.store.Every(asynclocktest.Any, asynclocktest.Hang)
			wantCloses(w, c, most)
		})
		scene(t, name+", given back before", func(w *world) {
			c := w.retainer(asynclock.WithTTL(ttl))
			w.retained(c)
			w.store.Every(asynclocktest.Any, asynclocktest.Refuse)
			w.store.Tell(0, store.Event{Kind: store.EventDisconnected})
			w.pass(ttl / 3)
			wantCloses(w, c, most)
		})
	}
	scene(t, "but as long as the store needs", func(w *world) {
		c := w.retainer()
		w.retained(c)
		w.store.Every(asynclocktest.Release.On("key"), asynclocktest.Slow(0, time.Second/2))
		wantCloses(w, c, time.Second/2)
		w.wantUnused()
	})
}

// Nor does what was unlocked, or nobody waits for any more.
func TestCloseDoesNotWaitForReleasesThatAreRefused(t *testing.T) {
	const most = 3 * time.Second
	for name, ttl := range map[string]time.Duration{"default TTL": ttl, "longest TTL": asynclock.MaxTTL} {
		scene(t, name+", unlocked", func(w *world) {
			c := w.client(asynclock.WithTTL(ttl))
			l := lock(w, c, "key")
			w.store.Every(asynclocktest.Any, asynclocktest.Refuse)
			answer := l.UnlockChan(w.Context())
			wantCloses(w, c, most)
			wantError(w, <-answer, asynclock.ErrOutcomeUnknown, asynclock.ErrClosed)
		})
		scene(t, name+", cancelled", func(w *world) {
			c := w.client(asynclock.WithTTL(ttl))
			w.store.Every(asynclocktest.Any, asynclocktest.Refuse)
			ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := c.Lock(ctx, "key")
			wantError(w, err, context.DeadlineExceeded)
			wantCloses(w, c, most)
		})
	}
}

func wantCloses(w *world, c *asynclock.Client, most time.Duration) {
	w.Helper()
	start := time.Now()
	if err := c.Close(context.Background()); err != nil {
		w.Logf("Close: %v", err)
	}
	if took := time.Since(start); took > most {
		w.Errorf("Close took %v, want at most %v", took, most)
	}
}
