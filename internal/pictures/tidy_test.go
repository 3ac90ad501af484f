// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestTidy(t *testing.T) {
	t.Parallel()
	read := []event{
		{1050 * ms, "at 127.0."},
		{1060 * ms, "0.1:39107, a\r\n   B     "},
		{1250 * ms, "      81234  waits\r\n"},
		{1350 * ms, "same step\r\n"},
		{9000 * ms, "after a gap\r\n"},
		{9500 * ms, "end"},
	}
	want := []event{
		{0, "at 127.0.0.1:6379, a\r\n"},
		{200 * ms, "   B            4002  waits\r\nsame step\r\n"},
		{2200 * ms, "after a gap\r\n"},
		{2600 * ms, "end"},
		{8600 * ms, reset},
	}
	if got := tidy(read); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := tidy(nil); len(got) != 0 {
		t.Errorf("got %v of nothing, want nothing", got)
	}
}

func TestAnonymous(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://127.0.0.1:1/x 127.0.0.1:65535.":                            "http://127.0.0.1:6379/x 127.0.0.1:6379.",
		"\x1b[32m   A               7  HOLDS    1795466622327669   12\r\n": "\x1b[32m   A            4001  HOLDS    1795466622327669   12\r\n",
		"   E         4194304  rests\r\n":                                  "   E            4005  rests\r\n",
		"Process A holds it 12345678  times":                               "Process A holds it 12345678  times",
	} {
		if got := anonymous(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
