// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
)

func TestJitter(t *testing.T) {
	t.Parallel()
	smallest, largest := time.Hour, time.Duration(0)
	for range 10_000 {
		d := backoff.Jitter(time.Second, 0.2)
		smallest, largest = min(smallest, d), max(largest, d)
	}
	if smallest < 800*time.Millisecond || smallest > 820*time.Millisecond {
		t.Errorf("the smallest of 10,000: got %v, want 800ms and little more", smallest)
	}
	if largest > 1200*time.Millisecond || largest < 1180*time.Millisecond {
		t.Errorf("the largest of 10,000: got %v, want 1.2s and little less", largest)
	}
}

func TestDoubled(t *testing.T) {
	t.Parallel()
	if got := backoff.Doubled(50, 7, 20); got != 50 {
		t.Errorf("with a limit below the first: got %d, want 50", got)
	}
	for failures, want := range map[int]time.Duration{
		-1: 50, 0: 50, 1: 100, 2: 200, 3: 300, 60: 300, 1 << 40: 300,
	} {
		if got := backoff.Doubled(50, failures, 300); got != want {
			t.Errorf("after %d failures: got %d, want %d", failures, got, want)
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, want := range []bool{true, false} {
			begin := time.Now()
			if got := backoff.Sleep(ctx, 40*time.Second); got != want || time.Since(begin) > 40*time.Second {
				t.Errorf("got %t after %v, want %t", got, time.Since(begin), want)
			}
		}
	})
}
