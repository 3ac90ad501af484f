// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

func TestRenewAt(t *testing.T) {
	t.Parallel()
	s := schedule{ttl: 15 * time.Second}
	due := make(map[watchdog.Instant]bool)
	start := watchdog.Now()
	for i := range 1000 { // a second of leases, one per millisecond
		sent := start.Add(time.Duration(i) * time.Millisecond)
		at := s.renewAt(sent)
		if got := at.Sub(sent); got > s.ttl/3 || got <= s.ttl/3-s.ttl/15 {
			t.Fatalf("got %v after the last extension, want 4s to 5s", got)
		}
		due[at] = true
	}
	if len(due) > 2 {
		t.Errorf("1000 leases taken within a fifteenth of the ttl: due at %d moments, want at most 2", len(due))
	}
	clear(due)
	for lane := range 256 {
		at := schedule{ttl: 15 * time.Second, lane: lane}.renewAt(start)
		if got := at.Sub(start); got > s.ttl/3 || got <= s.ttl/3-s.ttl/15 {
			t.Fatalf("lane %d: got %v after the last extension, want 4s to 5s", lane, got)
		}
		due[at] = true
	}
	if len(due) != 256 {
		t.Errorf("256 lanes: due at %d moments, want each at its own", len(due))
	}
	if got := (schedule{ttl: time.Millisecond}).renewAt(start); got > start.Add(time.Millisecond) {
		t.Errorf("of a tiny ttl: got %v after, want no more than that TTL", got.Sub(start))
	}
}

func TestRetryIn(t *testing.T) {
	t.Parallel()
	s := schedule{ttl: 15 * time.Second}
	for failures, middle := range map[int]time.Duration{
		-1: 50 * time.Millisecond, 0: 50 * time.Millisecond, 1: 50 * time.Millisecond, 2: 100 * time.Millisecond, 4: 400 * time.Millisecond,
		5: 500 * time.Millisecond, 1000: 500 * time.Millisecond, // a thirtieth of the TTL
	} {
		between(t, middle, func() time.Duration { return s.retryIn(failures) })
	}
	between(t, time.Millisecond, func() time.Duration { return schedule{ttl: 2 * time.Millisecond}.retryIn(3) })
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		remaining time.Duration
		failures  int
		want      time.Duration
	}{
		{time.Hour, -1, time.Second},
		{time.Hour, 0, time.Second},
		{time.Hour, 1, 2 * time.Second},
		{time.Hour, 3, 8 * time.Second},
		{time.Hour, 1000, 15 * time.Minute},
		{4 * time.Second, 0, time.Second},
		{4 * time.Second, 5, time.Second},
		{2 * time.Second, 0, 500 * time.Millisecond},
		{100 * time.Millisecond, 0, 25 * time.Millisecond},
		{0, 0, 5 * time.Millisecond},
		{-time.Second, 2, 5 * time.Millisecond},
	} {
		if got := (schedule{ttl: 15 * time.Second}).timeout(c.remaining, c.failures); got != c.want {
			t.Errorf("with %v left and %d failures: got %v, want %v", c.remaining, c.failures, got, c.want)
		}
	}
}

func TestJitter(t *testing.T) {
	t.Parallel()
	between(t, time.Second, func() time.Duration { return jitter(time.Second) })
}

// between checks that durations are spread over a fifth either side of middle.
func between(t *testing.T, middle time.Duration, f func() time.Duration) {
	t.Helper()
	low, high := f(), f()
	for range 1000 {
		d := f()
		low, high = min(low, d), max(high, d)
	}
	if low < middle*4/5 || low > middle*9/10 || high > middle*6/5 || high < middle*11/10 {
		t.Errorf("got %v to %v, want them spread over %v to %v", low, high, middle*4/5, middle*6/5)
	}
}
