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
		"a/_c_x-lock-0000000001", "a/block-1234567890", "a/lock-0000000001/b", "a/lock--2147483648",
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

// Curator orders by the text after the last "lock-", whoever made the nodes.
func TestNodesOfAllProgramsHaveOneOrder(t *testing.T) {
	nodes, err := inOrder([]string{
		"_c_0000-lock-0000000007", "nested key", "_c_ffff-lock-0000000003", "lock-0000000005", "_c_x-__WRIT__0000000001", "lock-", "block-a", "block-42", "lock-1", "lock-999999999",
	})
	want := []string{"_c_ffff-lock-0000000003", "lock-0000000005", "_c_0000-lock-0000000007"}
	if err != nil || !slices.Equal(nodes, want) {
		t.Errorf("got %q, %v, want %q", nodes, err, want)
	}
}

// Past 2147483647 the server's numbers are negative, and their order is none.
func TestNumbersThatOverflowAreRefused(t *testing.T) {
	for _, name := range []string{"_c_a-lock--2147483648", "lock-12345678901", "lock--000000001"} {
		if _, err := inOrder([]string{"lock-0000000001", name}); !errors.Is(err, store.ErrForeignData) {
			t.Errorf("%q: got %v, want ErrForeignData", name, err)
		}
	}
}

func TestAnOwnerIsNotReadOffItsNode(t *testing.T) {
	owner := "AAAAAAAAAAAAAAAAAAAAAA.3f"
	name := nodePrefix(owner)
	if len(name) != len("_c_")+36+len("-lock-") || strings.Contains(name, owner[:8]) || name == nodePrefix(owner[1:]) {
		t.Errorf("got %q, want Curator's form, with nothing of the owner in it", name)
	}
	if !isNode(name + "0000000001") {
		t.Errorf("%q is not taken for a node", name)
	}
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

// FuzzNodes: whatever others call the children of a lock, those that are nodes have
// one order, and ours is among them.
func FuzzNodes(f *testing.F) {
	for _, name := range []string{"lock-0000000001", "_c_x-lock-9999999999", "block-5", "lock-00000000010", "x"} {
		f.Add(name)
	}
	ours := nodePrefix("owner") + "0000000005"
	f.Fuzz(func(t *testing.T, name string) {
		nodes, err := inOrder([]string{name, ours})
		if err != nil {
			if !errors.Is(err, store.ErrForeignData) {
				t.Errorf("%q: got %v, want ErrForeignData", name, err)
			}
			return
		}
		if !slices.Contains(nodes, ours) {
			t.Errorf("beside %q: got %q, want ours in it", name, nodes)
		}
		if len(nodes) == 2 && sequence(nodes[0]) > sequence(nodes[1]) {
			t.Errorf("%q: got %q, want them in order", name, nodes)
		}
		for _, node := range nodes {
			if _, err := sequenceNumber(node); err != nil {
				t.Errorf("%q: %v", node, err)
			}
		}
	})
}
