// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// ends reports whether ctx ends after d, and not before.
func ends(ctx context.Context, d time.Duration) bool {
	time.Sleep(d - time.Nanosecond)
	synctest.Wait()
	if ctx.Err() != nil {
		return false
	}
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	return errors.Is(ctx.Err(), context.DeadlineExceeded)
}

func TestLimitIsSharedForAnEighth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ls limits
		first := ls.within(t.Context(), 800*time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		joined := ls.within(t.Context(), 800*time.Millisecond)
		if joined != first {
			t.Error("got another limit after an eighth of its time, want the same")
		}
		time.Sleep(time.Nanosecond)
		next := ls.within(t.Context(), 800*time.Millisecond)
		if next == first {
			t.Error("got the same limit after more than an eighth of its time, want another")
		}
		if !ends(first, 700*time.Millisecond-time.Nanosecond) {
			t.Error("the first limit does not end when its time is over")
		}
		if !ends(next, 100*time.Millisecond+time.Nanosecond) {
			t.Error("the next limit does not end when its time is over")
		}
	})
}

// Timeouts of one class differ by up to a factor of two.
func TestNoCallGetsMuchMoreOrLessThanItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ls limits
		for _, timeout := range []time.Duration{
			100 * time.Millisecond, 90 * time.Millisecond, 140 * time.Millisecond, 81 * time.Millisecond, 150 * time.Millisecond,
		} {
			l := ls.within(t.Context(), timeout)
			deadline, _ := l.Deadline()
			if got := time.Until(deadline); got > timeout || got < timeout*7/8 {
				t.Errorf("a call with a timeout of %v got %v", timeout, got)
			}
		}
	})
}

func TestLimitLastsUntilItsLastUserLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ls limits
		a := ls.within(t.Context(), time.Second)
		b := ls.within(t.Context(), time.Second)
		ls.leave(a)
		time.Sleep(time.Second / 2)
		other := ls.within(t.Context(), time.Second) // takes the place of the first
		if err := b.Err(); err != nil {
			t.Errorf("while a call is under way: got %v, want nil", err)
		}
		ls.leave(b)
		if err := b.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("when nobody uses it any more: got %v, want %v, which stops its timer", err, context.Canceled)
		}
		ls.leave(other)
		if err := other.Err(); err != nil {
			t.Errorf("while calls may join: got %v, want nil", err)
		}
	})
}

func TestValuedHasTheValuesOfOneAndTheEndOfTheOther(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithCancel(t.Context())
	v := valued{ctx, context.WithValue(context.Background(), key{}, "value")}
	if got := v.Value(key{}); got != "value" {
		t.Errorf("got value %v, want the caller's", got)
	}
	derived, stop := context.WithCancel(v)
	defer stop()
	cancel()
	<-derived.Done()
	if v.Err() == nil {
		t.Error("got no error after the end of the bound")
	}
}
