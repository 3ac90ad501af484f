// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strings"
	"testing"
)

// These names are shared by all versions of all clients: a test that has to
// change here is a change that makes two holders.
func TestKeyNamesNeverChange(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"order:42": "p:{b17}:order:42:l",
		"a":        "p:{bed}:a:l",
		"ü}%":      "p:{b69}:%C3%BC%7D%25:l",
	} {
		if got := string(appendKey(nil, "p", bucketOf(key), key, 'l')); got != want {
			t.Errorf("Redis key of %q: got %q, want %q", key, got, want)
		}
	}
}

func TestKeyNamesReadBack(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a", "}", "{", "}x}", "{}", "%", "%41", "*?[]\\", "a b", "\x00\r\n", "ключ", "日本", ":l", "a:q", strings.Repeat("ü", 256)} {
		name := string(appendKey(nil, "p", bucketOf(key), key, 'q'))
		for _, c := range name[len("p:{b00}:"):] {
			if strings.ContainsRune("{}*?[]\\ ", c) || c < ' ' || c > '~' {
				t.Errorf("Redis key of %q: got %q, want no %q in it", key, name, c)
			}
		}
		if got, kind, ok := parseKey("p", name); got != key || kind != 'q' || !ok {
			t.Errorf("parseKey(%q): got %q, %c, %v; want %q, q", name, got, kind, ok, key)
		}
	}
}

func TestForeignKeyNamesAreNotRead(t *testing.T) {
	t.Parallel()
	good := string(appendKey(nil, "p", bucketOf("key"), "key", 'l'))
	for _, name := range []string{
		"", "p", "p:", "p:{b", "p:{b00}", "p:{b00}:", "p:{b00}::l", "q" + good[1:], good[:len(good)-2],
		"p:{b00}:key:l", strings.Replace(good, "key", "k%65y", 1), strings.Replace(good, "key", "k%", 1),
		strings.Replace(good, "key", "k%7", 1), strings.Replace(good, "key", "k%7b", 1), strings.Replace(good, "key", "k ey", 1),
		strings.ToUpper(good), strings.Replace(good, "}", ")", 1),
		string(appendKey(nil, "p", bucketOf("\xff"), "\xff", 'l')),
		string(appendKey(nil, "p", bucketOf(strings.Repeat("x", 513)), strings.Repeat("x", 513), 'l')),
	} {
		if key, kind, ok := parseKey("p", name); ok {
			t.Errorf("parseKey(%q): got %q, %c; want it refused", name, key, kind)
		}
	}
}

func TestBucketsAreUsedEvenly(t *testing.T) {
	t.Parallel()
	var count [buckets]int
	const n = buckets * 100
	for i := range n {
		count[bucketOf("orders/"+strings.Repeat("x", i%3)+string(rune('a'+i%26))+"/"+string(rune(i)))]++
	}
	for bucket, got := range count {
		if got < 50 || got > 180 {
			t.Errorf("bucket %d: got %d of %d keys, want about 100", bucket, got, n)
		}
	}
}

func FuzzKeyNames(f *testing.F) {
	f.Add("order:42", "order")
	f.Add("}{%*?[]\\ \x00\x7f\xff", "}")
	f.Fuzz(func(t *testing.T, key, prefix string) {
		encoded := string(appendEncoded(nil, key))
		if got, ok := decode(encoded); !ok || got != key {
			t.Errorf("decode(%q): got %q, %v; want %q", encoded, got, ok, key)
		}
		if got := strings.HasPrefix(encoded, string(appendEncoded(nil, prefix))); got != strings.HasPrefix(key, prefix) {
			t.Errorf("%q encoded begins with %q encoded: got %v, want as the keys themselves", key, prefix, got)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add("p:{b00}:key:l")
	f.Add(string(appendKey(nil, "p", bucketOf("a}b"), "a}b", 'q')))
	f.Fuzz(func(t *testing.T, name string) {
		key, kind, ok := parseKey("p", name)
		if !ok {
			return
		}
		if again := string(appendKey(nil, "p", bucketOf(key), key, kind)); again != name {
			t.Errorf("parseKey(%q): got %q, whose name is %q", name, key, again)
		}
	})
}
