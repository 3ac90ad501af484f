// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"
	"time"
)

// A step is one input at a time since the start, and its effects as text. The effects are separated by
// semicolons. An alarm may be "alarm ~1.5s": that long from now, up to a fifth more or less. It may be
// "alarm <50ms": within that time from now.
type step struct {
	at    time.Duration
	input input
	want  string
}

// A row is one case of a table: its steps, and the state after the last one. A step whose effects are
// "..." prepares the case; another row or table has its effects.
type row struct {
	name  string
	steps []step
	state string
}

// check runs each row with a machine of its own.
func checkRows(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i, s := range r.steps {
				w.now = start.Add(s.at)
				got := w.step(s.input)
				if !w.matches(got, s.want) {
					t.Fatalf("step %d, at %v: got\n\t%s\nwant\n\t%s", i+1, s.at, strings.Join(got, "; "), s.want)
				}
			}
			if got := w.state(); got != r.state {
				t.Errorf("in the end: got %q, want %q", got, r.state)
			}
		})
	}
}

func (w *world) matches(got []string, want string) bool {
	if want == "..." {
		return true
	}
	var wanted []string
	if want != "" {
		wanted = strings.Split(want, "; ")
	}
	if len(got) != len(wanted) {
		return false
	}
	for i := range got {
		if !w.equal(got[i], wanted[i]) {
			return false
		}
	}
	return true
}

func (w *world) equal(got, want string) bool {
	about, isAbout := strings.CutPrefix(want, "alarm ~")
	within, isWithin := strings.CutPrefix(want, "alarm <")
	if !isAbout && !isWithin || !strings.HasPrefix(got, "alarm ") || w.alarm == 0 {
		return got == want
	}
	in := w.alarm.Sub(w.now)
	if isAbout {
		d, err := time.ParseDuration(about)
		return err == nil && in >= d*4/5 && in <= d*6/5
	}
	d, err := time.ParseDuration(within)
	return err == nil && in >= 0 && in < d
}
