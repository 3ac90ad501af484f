// SPDX-License-Identifier: Apache-2.0

package board

import (
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// TestPace: the next list comes a second after the last one, or later if that took long.
func TestPace(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{0: time.Second, 80 * time.Millisecond: time.Second, 500 * time.Millisecond: 6 * time.Second} {
		if got := new(Pace).After(took, nil); got != want {
			t.Errorf("after %v: got %v, want %v", took, got, want)
		}
	}
	for took, want := range map[time.Duration]time.Duration{0: time.Second, 10 * time.Second: 20 * time.Second} {
		if got := new(Pace).After(took, errors.New("no answer")); got != want {
			t.Errorf("after a failure in %v: got %v, want %v", took, got, want)
		}
	}
	var p Pace
	for i, step := range []struct{ took, want time.Duration }{
		{time.Millisecond, time.Second}, {3 * time.Second, time.Second}, {2 * time.Second, 24 * time.Second}, {time.Millisecond, time.Second},
	} {
		if got := p.After(step.took, nil); got != step.want {
			t.Errorf("list %d, in %v: got %v, want %v", i, step.took, got, step.want)
		}
	}
}

// TestGaps: who has a key after a time in which nobody looked, or the list failed, may have had it for long, and after a long
// time that is counted as no grant. A holder that is the same has had it since it was seen first.
func TestGaps(t *testing.T) {
	t.Parallel()
	held := func(key string, token int64) asynclock.Info {
		return asynclock.Info{Key: key, Held: true, Token: token}
	}
	var b Board
	now := time.Unix(0, 0)
	look := func(after time.Duration, infos ...asynclock.Info) {
		now = now.Add(after)
		b.Update(now, sampleOf(infos...), true)
	}
	wants := func(when string, want map[string]string) {
		t.Helper()
		for key, want := range want {
			cells := b.Cells(b.Rows[key], now)
			if got := cells[ByHeld] + " " + cells[ByGrants]; got != want {
				t.Errorf("%s, %s: got held and grants %s, want %s", when, key, got, want)
			}
		}
	}
	look(0)
	look(time.Second, held("same", 1), held("other", 1))
	look(4*time.Second, held("same", 1), held("other", 2))
	wants("after 4 s", map[string]string{"same": "4s 0.2", "other": "0s 0.4+"})
	look(7*time.Second, held("same", 1), held("other", 3))
	wants("after 7 s more", map[string]string{"same": "11s 0.0", "other": "0s+ 0.2+"})
	for range 3 { // an outage
		now = now.Add(time.Minute)
		b.Update(now, b.Last, false)
	}
	if got, want := b.Ago(now), "3m0s ago"; got != want {
		t.Errorf("got %q, want the time of the last whole list, %q", got, want)
	}
	look(time.Second, held("same", 1), held("other", 4), held("new", 1))
	wants("after an outage", map[string]string{"same": "3m12s -", "other": "0s+ -", "new": "0s+ -"})
	look(time.Second, held("other", 5))
	wants("a second later", map[string]string{"other": "0s 1.0"})
	look(time.Second, held("other", 6))
	b.Update(now.Add(9*time.Second), sampleOf(held("other", 7)), false) // is counted, and not whole
	look(11*time.Second, held("other", 7))
	look(time.Second, held("other", 8))
	wants("after a list that broke off", map[string]string{"other": "0s 1.0"})
}
