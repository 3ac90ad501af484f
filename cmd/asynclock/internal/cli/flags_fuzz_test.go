// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"
)

// FuzzWaitLimit: what --wait takes is for ever or some time from now on, and what
// it prints it takes again.
func FuzzWaitLimit(f *testing.F) {
	for _, text := range []string{"forever", "0", "500ms", "10m", "-1s", "1h2m3.5s", "9223372036854775807ns", "", "1", "∞"} {
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
