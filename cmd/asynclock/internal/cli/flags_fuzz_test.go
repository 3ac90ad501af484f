// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"
)

// FuzzWaitLimit: what --wait takes is for ever or some time from now on, and what
// it prints it takes again.
func FuzzWaitLimit(f *testing.F) {
	for _, text := range []string{"forever", "0", "500ms", "10m", "-1s", "1h2m3.5s", "9223372036854775807ns", "", "1", "1.5", ".", "∞"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w := waitLimit(42)
		if err := w.Set(text); err != nil {
			if w != 42 {
				t.Errorf("%q: refused with %v, and set all the same to %v", text, err, time.Duration(w))
			}
			return
		}
		if w != forever && w < 0 {
			t.Fatalf("%q: got %v, want a time from now on", text, time.Duration(w))
		}
		var again waitLimit
		if err := again.Set(w.String()); err != nil || again != w {
			t.Errorf("%q: printed as %q and read as %v, %v", text, w.String(), again, err)
		}
	})
}

// FuzzConflictCode: what is taken is an exit code, and what it prints it takes again.
func FuzzConflictCode(f *testing.F) {
	for _, text := range []string{"0", "1", "255", "256", "-1", "+1", "0x1", "1e2", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c conflictCode
		if err := c.Set(text); err != nil {
			if c != (conflictCode{}) {
				t.Errorf("%q: refused with %v, and set all the same to %v", text, err, c)
			}
			return
		}
		var again conflictCode
		if err := again.Set(c.String()); err != nil || again != c || c.code < 0 || c.code > 255 {
			t.Errorf("%q: got %v, printed as %q and read as %v, %v", text, c, c.String(), again, err)
		}
	})
}
