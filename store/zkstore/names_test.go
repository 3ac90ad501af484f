// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

func TestKeysOfJavaAreWhatTheyAre(t *testing.T) {
	n := names{root: "/root"}
	for _, key := range []string{"a", "order:42", "a/b", "a b", "100%", "%2F", "ü", "世界", "..a", "a..", "_c_", "lock", "lock-x", "lock-1", "block-42", "a/block-42", "lock-0000000001", "lock--2147483648", "lock-1/x", "a/lock-123456789", "a/lock-12345678901x", "\u00a0", "\ufeff"} {
		if got, err := n.lock(key); err != nil || got != "/root/"+key {
			t.Errorf("lock(%q): got %q, %v, want it as in Java", key, got, err)
		}
	}
}

// The rule of Java's PathUtils: Curator refuses these.
func TestWhatJavaRefusesIsSpelledDifferently(t *testing.T) {
	n := names{root: "/root"}
	for _, key := range []string{"/", "a/", "/a", "a//b", ".", "..", "a/../b", "a/./b", "\x00", "\x1f", "\x7f", "\u009f", "🔒", "\ue000", "\uf8ff", "\ufff0"} {
		got, err := n.lock(key)
		if err != nil || !strings.HasPrefix(got, "/root/"+escaped) || strings.Count(got, "/") != 2 || !validPath(got) || isNode(got) {
			t.Errorf("lock(%q): got %q, %v, want one escaped name that is no owner's node", key, got, err)
		}
	}
}

func TestKeysThatAreNone(t *testing.T) {
	n := names{root: "/root"}
	for _, key := range []string{
		"", "\xff", strings.Repeat("x", store.MaxKeyLen+1),
		// Names that would be waiters of another lock, in Java too.
		"a/_c_x-lock-0000000001", "a/_c_x-__READ__0000000001", "a/__WRIT__1234567890/b", "a/block-1234567890", "a/lock-0000000001/b", "a/lock--2147483648",
		// Names that are the spelling of other keys.
		"asynclock.escaped:a", "asynclock.escaped:",
	} {
		if _, err := n.lock(key); !errors.Is(err, store.ErrInvalidKey) {
			t.Errorf("lock(%.10q): got %v, want ErrInvalidKey", key, err)
		}
	}
	n.pathTo = func(string) string { return "no path" }
	if _, err := n.lock("key"); !errors.Is(err, store.ErrInvalidKey) {
		t.Errorf("a key mapped to no path: got %v, want ErrInvalidKey", err)
	}
}

// FuzzKeys: there is one way back from a path, to the key that it was made of, and
// no key is a node of another's.
func FuzzKeys(f *testing.F) {
	for _, key := range []string{"a", "a/b", "/", "a%2Fb", "asynclock.escaped:", "asynclock.escaped:%41", "lock-1", "a/lock-0000000001", "🔒", "\x00", ".", "x/lock--1"} {
		f.Add(key)
	}
	n := names{root: "/root"}
	f.Fuzz(func(t *testing.T, key string) {
		path, err := n.lock(key)
		if err != nil {
			return
		}
		if !validPath(path) {
			t.Errorf("lock(%q): got %q, which is no path", key, path)
		}
		if back, ok := n.key(path); !ok || back != key {
			t.Errorf("key(%q): got %q, %v, want %q", path, back, ok, key)
		}
		if slices.ContainsFunc(strings.Split(strings.TrimPrefix(path, "/root/"), "/")[1:], isNode) {
			t.Errorf("lock(%q): got %q, which could be an owner's node", key, path)
		}
		for cut := range len(key) + 1 {
			if !n.mayLead(path, key[:cut]) {
				t.Errorf("mayLead(%q, %q): got false, want true", path, key[:cut])
			}
		}
	})
}

// FuzzPaths: what others put below the root is a key only if that key would be put
// there.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{"/root", "/root/a", "/root/asynclock.escaped:%2F", "/root/asynclock.escaped:%2f", "/root/asynclock.escaped:a", "/root/asynclock.escaped:%", "/else"} {
		f.Add(path)
	}
	n := names{root: "/root"}
	f.Fuzz(func(t *testing.T, path string) {
		key, ok := n.key(path)
		if !ok {
			return
		}
		if back, err := n.lock(key); err != nil || back != path {
			t.Errorf("lock(key(%q)): got %q, %v, want the same", path, back, err)
		}
	})
}

func TestWhoHasANode(t *testing.T) {
	for data, want := range map[string]string{
		"": "", "10.1.2.3": "10.1.2.3", "the night shift, »ü«": "the night shift, »ü«",
		"\xff": "another program", "a\nb": "another program", strings.Repeat("x", 129): "another program",
	} {
		if got := describe([]byte(data)); got != want {
			t.Errorf("describe(%.10q): got %q, want %q", data, got, want)
		}
	}
}

func TestTokensRiseWithZxids(t *testing.T) {
	last := int64(0)
	for _, czxid := range []int64{1, 2, 1 << 32, 1<<32 + 1, 500_000 << 32} {
		k := &lockNode{store: new(Store), czxid: czxid}
		got, err := k.grant()
		if err != nil || got.Token <= last || got.TokensFollowClock {
			t.Errorf("grant of zxid %#x: got %+v, %v, want tokens above %d", czxid, got, err, last)
		}
		last = got.Token + got.Reserved
	}
	k := &lockNode{store: new(Store), czxid: 1 << 60}
	if got, err := k.grant(); !errors.Is(err, store.ErrForeignData) {
		t.Errorf("grant of a zxid that is too large: got %+v, %v, want ErrForeignData", got, err)
	}
}
