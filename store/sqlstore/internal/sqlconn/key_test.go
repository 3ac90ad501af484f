// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzKeyName: names lead back to their keys, are text that every database takes, and
// begin as their keys do.
func FuzzKeyName(f *testing.F) {
	f.Add("order:42", "order:")
	f.Add("100%", "100%2")
	f.Add("a\x00\"\\\x7f", "a\x00")
	f.Add("世界", "世")
	f.Fuzz(func(t *testing.T, key, other string) {
		if key, ok := KeyOf(other); ok && KeyName(key) != other {
			t.Errorf("key of %q: got %q, whose name is %q", other, key, KeyName(key))
		}
		if CheckKey(key) != nil || !utf8.ValidString(other) {
			return
		}
		name := KeyName(key)
		if got, ok := KeyOf(name); !ok || got != key {
			t.Errorf("key of %q: got %q, %v, want %q", name, got, ok, key)
		}
		if strings.ContainsAny(name, "\x00\n\"\\\x7f") {
			t.Errorf("name of %q: got %q, with characters that it should not have", key, name)
		}
		if got, want := strings.HasPrefix(name, KeyName(other)), strings.HasPrefix(key, other); got != want {
			t.Errorf("name of %q begins with that of %q: got %v, want %v", key, other, got, want)
		}
	})
}
