// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"testing"
	"testing/synctest"
	"time"
)

// Not parallel, here and below: the time slept is the process's.
func TestSleepCounts(t *testing.T) {
	before := slept.Load()
	defer slept.Store(before)
	synctest.Test(t, func(t *testing.T) {
		start := Now()
		time.Sleep(time.Second)
		learn(before + int64(time.Hour))
		if got := Now().Sub(start); got != time.Hour+time.Second {
			t.Errorf("a second awake and an hour asleep: got %v", got)
		}
		learn(before + int64(time.Minute))
		if got := Now().Sub(start); got != time.Hour+time.Second {
			t.Errorf("after a reading that is too small: got %v, want no change", got)
		}
	})
}

// A goroutine that reads the clock while another asks the system must not get the time without the
// sleep that the other is about to learn.
func TestSleepIsSeenByAllWhoAskAtOnce(t *testing.T) {
	before := slept.Load()
	defer slept.Store(before)
	synctest.Test(t, func(t *testing.T) {
		start := Now()
		time.Sleep(time.Second)
		anHour := func(time.Time) time.Duration { return time.Duration(before) + time.Hour }
		var other Instant
		first := refresh(func(t time.Time) time.Duration {
			other = refresh(anHour)
			return anHour(t)
		})
		for who, now := range map[string]Instant{"the first to ask": first, "the other": other} {
			if got := now.Sub(start); got != time.Hour+time.Second {
				t.Errorf("%s: got %v since a second and an hour of sleep ago", who, got)
			}
		}
	})
}

func TestReadingsNeverGoBack(t *testing.T) {
	last := Refresh()
	for range 100_000 {
		now := Refresh()
		if now < last {
			t.Fatalf("got %v after %v", now, last)
		}
		last = now
	}
}

func TestInstantsAreAfterTheZeroOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its time begins in the year 2000
		if got := Now(); got <= 0 {
			t.Errorf("got %d, want more than 0", got)
		}
	})
}

func TestArithmetic(t *testing.T) {
	i := Instant(5 * time.Second)
	if got := i.Add(time.Second); got != Instant(6*time.Second) {
		t.Errorf("Add: got %v, want 6s", time.Duration(got))
	}
	if got := i.Sub(Instant(7 * time.Second)); got != -2*time.Second {
		t.Errorf("Sub: got %v, want -2s", got)
	}
}
