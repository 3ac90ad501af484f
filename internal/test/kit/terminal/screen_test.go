// SPDX-License-Identifier: Apache-2.0

package terminal

import "testing"

func TestScreen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ written, want string }{
		"lines":             {"one\r\ntwo", "one\ntwo"},
		"a place":           {"\x1b[2;3Hx\x1b[Htop", "top\n  x"},
		"over what was":     {"abcdef\x1b[1;3HX\bY", "abYdef"},
		"to the end":        {"abcdef\x1b[3D\x1b[K", "abc"},
		"all":               {"abc\r\ndef\x1b[2Jx", "\n   x"},
		"all below":         {"abc\r\ndef\r\nghi\x1b[2;2H\x1b[J", "abc\nd"},
		"scrolls":           {"a\r\nb\r\nc\r\nd", "b\nc\nd"},
		"scrolls down":      {"a\r\nb\r\nc\x1b[H\x1bMx", "x\na\nb"},
		"scrolls a part":    {"a\r\nb\r\nc\x1b[2;3r\x1b[3;1H\nx\x1b[r\x1b[Hy", "y\nc\nx"},
		"up, in a part":     {"a\r\nb\r\nc\x1b[1;2r\x1b[H\x1bMx\x1b[3;1H\x1bMy", "x\ny\nc"},
		"inserts":           {"abc\x1b[2D\x1b[4hxy\x1b[4l\x1b[Cz", "axybz"},
		"deletes":           {"abcdef\x1b[1;2H\x1b[2P\x1b[99Cx", "adef     x"},
		"colors and titles": {"\x1b[1;7mbold\x1b[m\x1b]2;a title\x07\x1b[?25l\x1b[>4;2m\x1b(B\x1b7!", "bold!"},
		"moves":             {"\x1b[2Bx\x1b[2A\x1b[5Cy\x1b[2Gz", " z    y\n\nx"},
		"too far":           {"\x1b[99;99H\x1b[Ax\x1b[99Dy", "\ny        x"},
		"letters":           {"é…\x1b[2D!", "!…"},
	} {
		s := NewScreen(3, 10)
		for _, b := range []byte(tt.written) { // in the smallest pieces
			if n, err := s.Write([]byte{b}); n != 1 || err != nil {
				t.Errorf("%s: got %d, %v, want 1, nil", name, n, err)
			}
		}
		if got := s.String(); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
