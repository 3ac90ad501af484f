// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"encoding/json"

	"github.com/asynclock/asynclock-go/asynclock"
)

// kinds are the counts of a client, by kind of lease.
func kinds(s asynclock.Stats) map[string]asynclock.Acquisitions {
	return map[string]asynclock.Acquisitions{"exclusive": s.Exclusive, "readers": s.Readers, "permits": s.Permits, "several": s.Several}
}

// numbers are the counts in v by their names in JSON, those inside others with the names of these before, except 0.
func numbers(v any) map[string]int {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		panic(err)
	}
	found := make(map[string]int)
	var add func(prefix string, all map[string]any)
	add = func(prefix string, all map[string]any) {
		for name, value := range all {
			switch value := value.(type) {
			case map[string]any:
				add(prefix+name+".", value)
			case float64:
				if value != 0 {
					found[prefix+name] = int(value)
				}
			}
		}
	}
	add("", all)
	return found
}

// wantSums fails the story unless the client's counts can be true.
func (w *world) wantSums(c *asynclock.Client) {
	w.Helper()
	for name, n := range numbers(c.Stats()) {
		if n < 0 {
			w.Errorf("%s: got %d", name, n)
		}
	}
}

// wantAllOver fails the story unless the counts say that nothing goes on in a client, which is closed.
func (w *world) wantAllOver(c *asynclock.Client) {
	w.Helper()
	s := c.Stats()
	for kind, a := range kinds(s) {
		if a.Requested != a.Acquired.Sum()+a.Refused.Sum()+a.GivenUp.Sum() || a.Acquired.Sum() != a.Ended.Sum() {
			w.Errorf("%s, after Close: got %v, want sums that agree", kind, numbers(a))
		}
	}
	if s.Keys != (asynclock.Keys{}) || s.HooksLeftOut != 0 {
		w.Errorf("after Close: got %+v, and %d calls of hooks left out, want nothing", s.Keys, s.HooksLeftOut)
	}
}
