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

// A try on other terms takes a permit that lies in its own client. It asks once the store has the permit back.
func TestTryAcquireOfAPermitThatLies(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		s := semaphore(w, c, 2)
		all, err := s.Acquire(w.Context(), 2)
		if err != nil {
			w.Fatal(err)
		}
		both := make(chan *asynclock.Lease, 2)
		for range 2 {
			go func() { // they queue together, so the client has both permits for one block
				l, err := s.Acquire(w.Context(), 1)
				if err != nil {
					w.Error(err)
				}
				both <- l
			}()
		}
		w.wait()
		unlock(w, all)
		kept, gone := <-both, <-both
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		lies := s.AcquireChan(ctx, 1)
		w.wait()
		unlock(w, gone)
		w.wait()
		if len(lies) != 1 {
			w.Fatal("the permit does not lie")
		}
		l, err := s.TryAcquire(w.Context(), 1, asynclock.WithTTL(20*time.Second))
		if err != nil {
			w.Fatal(err)
		}
		cancel()
		unlock(w, l)
		unlock(w, kept)
		w.pass(time.Second)
		w.wantUnused()
	})
}

// A TryRLock takes up what lies. A reader that queued behind it asks the store, though nobody contends any more.
func TestReaderBehindATryThatIsServed(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		mode := asynclock.WithMaxHold(time.Hour)
		ctx, cancel := context.WithCancel(w.Context())
		c.RLockChan(ctx, "key", mode)
		w.wait()
		writer := w.ask(ctx, other, "key")
		w.store.Next(asynclocktest.Acquire.From(0), asynclocktest.Slow(0, time.Millisecond/2))
		full := c.LockChan(w.Context(), "key", asynclock.WithQueueLimit(1))
		w.wait()
		try := w.askBy(w.Context(), c.TryRLock, "key", mode)
		reader := w.askBy(w.Context(), c.RLock, "key")
		w.pass(time.Millisecond / 2)
		_, err := (<-full).Lease()
		wantError(w, err, asynclock.ErrQueueFull)
		l := try.has()
		cancel()
		wantError(w, writer.ended(), context.Canceled)
		w.pass(time.Minute)
		unlock(w, reader.has())
		unlock(w, l)
		w.pass(time.Minute)
		w.wantUnused()
	})
}

// Its own client gives back what it retains, and takes the try's first request along. Another client that retains the key,
// too, has then the time to give it back.
func TestTryOfAReadersKeyThatBothRetain(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.retainer(), w.retainer()
		for _, c := range []*asynclock.Client{a, b} {
			l, err := c.RLock(w.Context(), "key")
			if err != nil {
				w.Fatal(err)
			}
			unlock(w, l)
		}
		w.wantRetained(true)
		w.distant()
		l, err := a.TryLock(w.Context(), "key")
		if err != nil {
			w.Fatalf("got error %v, want the key, which nobody has", err)
		}
		unlock(w, l)
	})
}
