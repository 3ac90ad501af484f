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

// bound is for how long keys are retained in these stories, much longer than a
// TTL.
const bound = 10 * ttl

// retainer makes a client that retains keys.
func (w *world) retainer(options ...asynclock.ClientOption) *asynclock.Client {
	w.Helper()
	return w.client(append([]asynclock.ClientOption{asynclock.WithRetention(bound)}, options...)...)
}

// retained takes a key, gives it back and makes sure that the client has it still.
func (w *world) retained(c *asynclock.Client, options ...asynclock.LockOption) *asynclock.Lease {
	w.Helper()
	l := lock(w, c, "key", options...)
	unlock(w, l)
	w.wantRetained(true)
	return l
}

// wantRetained fails the story unless the store has the key held, or not.
func (w *world) wantRetained(want bool) {
	w.Helper()
	w.wait()
	if got := w.inspect("key").Held; got != want {
		w.Errorf("the store has the key held: %v, want %v", got, want)
	}
}

// wantAsked fails the story unless the store was asked for the key so often.
func (w *world) wantAsked(want int) {
	w.Helper()
	w.wantCalls(asynclocktest.Acquire.On("key"), want)
}

// Whichever way a retained key is asked for, taking it again is a new lease with
// a larger token, and none of the store's business.
func TestRetainedKeyIsTakenAgainWithoutTheStore(t *testing.T) {
	story(t, func(w *world) {
		c := w.retainer(asynclock.WithReentry(true))
		leases := []*asynclock.Lease{w.retained(c)}
		take := func(l *asynclock.Lease, err error) {
			w.Helper()
			if err != nil {
				w.Fatal(err)
			}
			wantValid(w, l)
			leases = append(leases, l)
			wantError(w, leases[len(leases)-2].Err(), asynclock.ErrUnlocked)
		}
		for range 3 {
			take(c.Lock(w.Context(), "key"))
			unlock(w, leases[len(leases)-1])
			take(c.TryLock(w.Context(), "key"))
			wantError(w, <-leases[len(leases)-1].UnlockChan(w.Context()), nil)
			take((<-c.LockChan(w.Context(), "key")).Lease())
			unlock(w, leases[len(leases)-1])
			wantError(w, leases[len(leases)-1].Unlock(w.Context()), nil)
			err := c.WithLock(w.Context(), "key", func(ctx context.Context, l *asynclock.Lease) error {
				take(l, nil)
				joined := lock2(ctx, w, c)
				unlock(w, joined)
				wantValid(w, l)
				return nil
			})
			if err != nil {
				w.Errorf("WithLock: got %v, want no error", err)
			}
		}
		wantRising(w, leases...)
		w.wantAsked(1)
		w.wantCalls(asynclocktest.Release.On("key"), 0)
		w.wantRetained(true)
	})
}

// lock2 takes the key under ctx.
func lock2(ctx context.Context, w *world, c *asynclock.Client) *asynclock.Lease {
	w.Helper()
	l, err := c.Lock(ctx, "key")
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// Close gives back what is retained, and what is unlocked from then on is given
// back as well.
func TestCloseGivesRetainedKeysBack(t *testing.T) {
	scene(t, "with a lease held", func(w *world) {
		c := w.retainer()
		w.retained(c)
		held := lock(w, c, "held")
		closed := make(chan error, 1)
		go func() { closed <- c.Close(context.Background()) }()
		w.wantRetained(false)
		select {
		case err := <-closed:
			w.Errorf("Close returned %v, want it to wait for the lease", err)
		default:
		}
		start := time.Now()
		unlock(w, held)
		wantError(w, <-closed, nil)
		wantTime(w, "Close returned", time.Now(), start)
		w.wantUnused()
	})
	scene(t, "with no patience", func(w *world) {
		c := w.retainer()
		w.retained(c)
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		wantError(w, c.Close(ctx), nil)
		w.wantUnused()
	})
}

// A TryLock on other terms is over when the store can't be asked.
func TestTryLockOnOtherTermsDoesNotWait(t *testing.T) {
	story(t, func(w *world) {
		c := w.retainer()
		w.retained(c)
		w.store.Every(asynclocktest.Any, asynclocktest.Hang)
		before := time.Now()
		wantError(w, errOf(c.TryLock(w.Context(), "key", asynclock.WithTTL(2*ttl))), asynclock.ErrUnreachable)
		if took := time.Since(before); took > callTimeout {
			w.Errorf("TryLock took %v, want at most %v", took, callTimeout)
		}
	})
}

// Within the minimum hold the store keeps the key from everyone, us included.
func TestMinHoldIsNotRetained(t *testing.T) {
	story(t, func(w *world) {
		c := w.retainer(asynclock.WithMinHold(time.Second))
		unlock(w, lock(w, c, "key"))
		if _, err := c.TryLock(w.Context(), "key"); err == nil {
			w.Error("TryLock within the minimum hold: got the key, want ErrHeld")
		}
		w.pass(time.Second)
		w.wantUnused()
		l := lock(w, c, "key")
		w.pass(time.Second)
		unlock(w, l)
		w.wantRetained(true)
	})
}

// A key that passes inside the client is retained by the last, and passes again
// after idle time that nobody waited in.
func TestRetainedKeyStillPassesInTheClient(t *testing.T) {
	story(t, func(w *world) {
		c := w.retainer()
		for range 3 {
			leases := chain(w, c, 5)
			unlock(w, leases[4])
			wantRising(w, leases...)
			w.pass(ttl)
		}
		w.wantAsked(1)
		w.wantRetained(true)
	})
}

// While messages don't come through, or may have been lost, nothing is retained.
func TestNothingIsRetainedUnheard(t *testing.T) {
	for name, kind := range map[string]store.EventKind{"deaf": store.EventDisconnected, "gap": store.EventResync} {
		scene(t, name, func(w *world) {
			w.retained(w.retainer())
			w.store.Tell(0, store.Event{Kind: kind})
			w.wait()
			w.wantUnused()
		})
	}
}

// Silence in one lane is no reason to give back the keys of another.
func TestSilenceMayBeOfOneLane(t *testing.T) {
	story(t, func(w *world) {
		c := w.clientOf(lanes(w.store), asynclock.WithRetention(bound))
		unlock(w, lock(w, c, "key"))
		w.store.Tell(0, store.Event{Kind: store.EventResync, OneLane: true, Lane: 'a'})
		w.store.Tell(0, store.Event{Kind: store.EventDisconnected, OneLane: true, Lane: 'a'})
		w.wantRetained(true)
		w.store.Tell(0, store.Event{Kind: store.EventDisconnected, OneLane: true, Lane: 'k'})
		w.wantRetained(false)
	})
}

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
			wantError(w, errOf(c.Lock(ctx, "key")), context.DeadlineExceeded)
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
