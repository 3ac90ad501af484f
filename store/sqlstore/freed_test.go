// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// TestHeldIsSaidOfAHeldKey: a routine looks twice at Java's table, and a key that it finds
// held first may be free then. Nobody is told that it is held by nobody.
func TestHeldIsSaidOfAHeldKey(t *testing.T) {
	t.Parallel()
	java := &springSettings{region: DefaultRegion, generation: Spring7}
	for freed := range freedTries + 1 {
		left := freed
		s := answering(java, func(string, []item) ([]answer, error) {
			if left--; left >= 0 {
				return []answer{{Status: statusHeld}}, nil
			}
			return []answer{{Status: statusGranted, Token: 7}}, nil
		})
		for _, wait := range []bool{false, true} {
			left = freed
			q := request("key", "a")
			q.Wait = wait
			got := s.Acquire(t.Context(), []store.AcquireRequest{q})[0]
			want := store.Granted
			if freed == freedTries {
				want = map[bool]store.AcquireStatus{false: store.Held, true: store.Waiting}[wait]
			}
			if got.Err != nil || got.Status != want || got.Remaining > 0 {
				t.Errorf("a key that is freed %d times, wait %v: got %+v, want status %d", freed, wait, got, want)
			}
			if wait && want == store.Waiting && got.Recheck <= 0 {
				t.Errorf("a key that is freed %d times: got %+v, want a Recheck", freed, got)
			}
		}
	}
}

// TestHolderOfAFreeKey: who tries a key that is free, but that others wait for, is not told
// who had it before.
func TestHolderOfAFreeKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		st := newTables(t, d, WithPolling())
		c := join(t, st)
		c.hold(request("key", "a"))
		c.acquire(request("key", "b"))
		run(t, d, "UPDATE "+st.settings.prefix+"lock SET held_until = '2020-01-01'")
		q := request("key", "c")
		q.Wait = false
		got := c.acquire(q)
		if got.Status != store.Held || got.Holder != "" || got.HolderToken != 0 || got.Remaining >= 0 || got.Waiters != 1 {
			t.Errorf("Acquire without Wait of a free key with a queue: got %+v, want Held by nobody known, behind 1", got)
		}
	})
}

// TestListGoesOnBehindKeysThatAreGone: a page of keys that were gone when the routine
// looked closer neither ends the listing nor begins it anew.
func TestListGoesOnBehindKeysThatAreGone(t *testing.T) {
	t.Parallel()
	const keys = 3 * listPage
	for _, c := range []struct {
		name string
		gone func(call, place int) bool // whether that one of a page is gone
		ends bool                       // with an error
	}{
		{"none", func(int, int) bool { return false }, false},
		{"the last of each page", func(_, place int) bool { return place == listPage-1 }, false},
		{"all of a page", func(call, _ int) bool { return call == 1 }, false},
		{"all", func(int, int) bool { return true }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			s := answering(nil, func(_ string, items []item) (page []answer, err error) {
				if calls > 20 {
					t.Fatal("the listing goes on for ever")
				}
				from := 0
				if after := items[0].After; after != "" {
					if _, err := fmt.Sscanf(after, "key%d", &from); err != nil {
						t.Fatal(err)
					}
					from++
				}
				for i := from; i < keys && len(page) < items[0].Size; i++ {
					key := fmt.Sprintf("key%06d", i)
					if c.gone(calls, len(page)) {
						page = append(page, answer{})
					} else {
						page = append(page, answer{Key: key, Name: key, Held: true})
					}
				}
				calls++
				return page, nil
			})
			seen := make(map[string]bool)
			var failed error
			for info, err := range s.List(t.Context(), "") {
				if err != nil {
					failed = err
				} else {
					seen[info.Key] = true
				}
			}
			if (failed != nil) != c.ends {
				t.Errorf("List: got %v, want an error: %v", failed, c.ends)
			}
			if !c.ends && len(seen) != keys {
				t.Errorf("List: got %d keys, want %d", len(seen), keys)
			}
		})
	}
}
