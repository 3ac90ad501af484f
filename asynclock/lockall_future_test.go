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

func TestLockAllChanIsSelectedOn(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		b := lock(w, theirs, "b")
		future := ours.LockAllChan(w.Context(), []string{"b", "a"}, asynclock.WithMaxHold(time.Hour))
		select {
		case <-future:
			w.Fatal("the future is granted while a key is held")
		case <-time.After(time.Minute):
		}
		w.wantHeld("a", "b")
		unlock(w, b)
		result := <-future
		renewals := w.calls(asynclocktest.Renew.From(0))
		w.pass(grantTTL / 2) // nobody has claimed it: not renewed
		if got := w.calls(asynclocktest.Renew.From(0)); got != renewals {
			w.Errorf("renewals of what nobody has claimed: got %d, want none", got-renewals)
		}
		m, err := result.Lease()
		if err != nil {
			w.Fatal(err)
		}
		claimed := time.Now()
		again, err := result.Lease()
		if again != m || err != nil {
			w.Errorf("claimed twice: got %v, %v; want the same lease", again, err)
		}
		w.pass(10 * ttl)
		if w.calls(asynclocktest.Renew.From(0)) == renewals || m.Err() != nil {
			w.Errorf("a claimed lease: got error %v, want it renewed", m.Err())
		}
		<-m.Done()
		wantTime(w, "end", time.Now(), claimed.Add(time.Hour))
		wantError(w, m.Unlock(w.Context()), asynclock.ErrMaxHold)
		w.wait()
		w.wantUnused()
	})
}

// Whatever happens, there is one result and nothing is held after an error.
func TestLockAllChanHasExactlyOneResult(t *testing.T) {
	why := errors.New("why")
	type end func(w *world, c *asynclock.Client, cancel context.CancelCauseFunc)
	var (
		cancels end = func(_ *world, _ *asynclock.Client, cancel context.CancelCauseFunc) { cancel(why) }
		closes  end = func(w *world, c *asynclock.Client, _ context.CancelCauseFunc) {
			start := time.Now()
			w.close(c)
			wantTime(w, "Close", time.Now(), start)
		}
		forces end = func(w *world, _ *asynclock.Client, _ context.CancelCauseFunc) { w.force(w.bounded(), "c") }
	)
	for _, c := range []struct {
		name    string
		granted bool // before the end
		end     end
		want    error
	}{
		{"cancelled", false, cancels, why},
		{"closed", false, closes, asynclock.ErrClosed},
		{"granted", true, func(*world, *asynclock.Client, context.CancelCauseFunc) {}, nil},
		{"granted, then cancelled", true, cancels, why},
		{"granted, then closed", true, closes, asynclock.ErrClosed},
		{"granted, then not claimed in time", true, func(w *world, _ *asynclock.Client, _ context.CancelCauseFunc) {
			w.pass(trusted(ttl))
		}, asynclock.ErrNotClaimed},
		{"granted, then a part is taken by force", true, forces, asynclock.ErrForced},
		{"in vain", false, func(w *world, _ *asynclock.Client, _ context.CancelCauseFunc) {
			stop := w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Refuse)
			w.pass(time.Minute)
			stop()
		}, asynclock.ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			story(t, func(w *world) {
				holder, ours := w.bounded(), w.bounded()
				held := lock(w, holder, "b")
				ctx, cancel := context.WithCancelCause(w.Context())
				defer cancel(nil)
				future := ours.LockAllChan(ctx, []string{"c", "b", "a"}, asynclock.WithMinHold(time.Hour))
				w.wait()
				if c.granted {
					unlock(w, held)
					w.wait()
				}
				c.end(w, ours, cancel)
				w.wait()
				if len(future) != 1 {
					w.Fatalf("the channel has %d results, want one", len(future))
				}
				if c.want != nil && c.granted {
					w.wantUnused() // whether or not anybody receives
				}
				result := <-future
				m, err := result.Lease()
				if !errors.Is(err, c.want) || (m == nil) == (err == nil) {
					w.Errorf("got lease %v, error %v; want error %v", m, err, c.want)
				}
				again, err2 := result.Lease()
				if again != m || !errors.Is(err2, err) {
					w.Errorf("claimed twice: got %v, %v and %v, %v; want one answer", m, err, again, err2)
				}
				w.wait()
				switch {
				case m != nil:
					unlockAll(w, m)
					w.wantHeld("a", "b", "c") // by the minimum hold
				case c.granted:
					w.wantUnused()
				default:
					w.wantHeld("b")
				}
			})
		})
	}
}

// The claim itself sees what has ended the offer, even if nobody else has noticed.
func TestLockAllChanIsNotClaimedTooLate(t *testing.T) {
	story(t, func(w *world) {
		c := w.bounded()
		ctx, cancel := context.WithCancel(w.Context())
		result := <-c.LockAllChan(ctx, []string{"a", "b"})
		cancel()
		_, err := result.Lease()
		wantError(w, err, context.Canceled)
		wantOp(w, err, "lock all", "a")
		w.wait()
		w.wantUnused()

		result = <-c.LockAllChan(w.Context(), []string{"a", "b"}, asynclock.WithWait(time.Second))
		time.Sleep(time.Second + 1)
		_, err = result.Lease()
		wantError(w, err, context.DeadlineExceeded)

		result = <-c.LockAllChan(w.Context(), []string{"a", "b"})
		time.Sleep(trusted(ttl))
		_, err = result.Lease()
		wantError(w, err, asynclock.ErrNotClaimed)
		w.wait()
		w.wantUnused()
	})
}

// A future under a lease of all its keys keeps neither Close nor, for long, the keys.
func TestLockAllChanUnderALease(t *testing.T) {
	story(t, func(w *world) {
		c := w.bounded(asynclock.WithReentry(true))
		outer := lockAll(w, c, []string{"a", "b"})
		unclaimed := <-c.LockAllChan(outer.Context(), []string{"b", "a"})
		claimed, err := (<-c.LockAllChan(outer.Context(), []string{"b", "a"})).Lease()
		if err != nil {
			w.Fatal(err)
		}
		unlockAll(w, outer)
		w.pass(ttl)
		_, err = unclaimed.Lease()
		if err == nil {
			w.Error("claimed under a lease that has ended, want an error")
		}
		w.wantHeld("a", "b")
		unlockAll(w, claimed)
		w.wantUnused()

		outer = lockAll(w, c, []string{"a", "b"})
		ctx, cancel := context.WithCancel(context.WithoutCancel(outer.Context()))
		defer cancel()
		unclaimed = <-c.LockAllChan(ctx, []string{"b", "a"})
		unlockAll(w, outer)
		w.wantHeld("a", "b")
		w.pass(ttl)
		_, err = unclaimed.Lease()
		wantError(w, err, asynclock.ErrNotClaimed)
		w.wantUnused()

		outer = lockAll(w, c, []string{"a", "b"})
		ctx, cancel = context.WithCancel(context.WithoutCancel(outer.Context()))
		unclaimed = <-c.LockAllChan(ctx, []string{"b", "a"})
		cancel()
		_, err = unclaimed.Lease()
		wantError(w, err, context.Canceled)
		unlockAll(w, outer)
		w.wantUnused()

		outer = lockAll(w, c, []string{"a", "b"})
		<-c.LockAllChan(context.WithoutCancel(outer.Context()), []string{"b", "a"})
		unlockAll(w, outer)
		start := time.Now()
		w.close(c)
		wantTime(w, "Close", time.Now(), start)
		w.wantUnused()
	})
}
