// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
)

// With the default root, the nodes of the key "order/42" are
//
//	/SpringIntegration-LockRegistry/order/42                           the lock
//	/SpringIntegration-LockRegistry/order/42/_c_UUID-lock-0000000007   one owner's node
//
// The lock exists for as long as somebody needs it. Its children are the holder and the waiters.
// The child with the smallest number at the end of its name holds the key. nodename.go has the names
// of children, also of those of readers and writers.

// escaped begins the names of keys that are no valid paths. No key itself begins so.
const escaped = "asynclock.escaped:"

// names says where the locks of one root are.
type names struct {
	root   string
	pathTo func(key string) string // nil: below root, as Java does by default
	keyAt  func(path string) (key string, ok bool)
}

// lock returns the path of a key.
func (n names) lock(key string) (string, error) {
	if key == "" || len(key) > store.MaxKeyLen || !utf8.ValidString(key) {
		return "", fmt.Errorf("%w: must be UTF-8 of 1 to %d bytes", store.ErrInvalidKey, store.MaxKeyLen)
	}
	if n.pathTo == nil {
		switch below := strings.Split(key, "/")[1:]; {
		case strings.HasPrefix(key, escaped):
			return "", fmt.Errorf("%w: it begins with %q", store.ErrInvalidKey, escaped)
		case validPath("/"+key) && slices.ContainsFunc(below, isNode):
			return "", fmt.Errorf("%w: %q would be a node of the lock above it", store.ErrInvalidKey, key)
		}
		return n.root + "/" + escape(key), nil
	}
	path := n.pathTo(key)
	if !validPath(path) {
		return "", fmt.Errorf("%w: it is mapped to %q, which is no path of ZooKeeper's", store.ErrInvalidKey, path)
	}
	return path, nil
}

// key returns the key whose lock is at path. It is not ok if no key has its lock there.
func (n names) key(path string) (key string, ok bool) {
	if n.pathTo != nil {
		return n.keyAt(path)
	}
	name, below := strings.CutPrefix(path, n.root+"/")
	if !below {
		return "", false
	}
	if key, ok = unescape(name); !ok {
		return "", false
	}
	spelled, err := n.lock(key)
	return key, err == nil && spelled == path // otherwise two names would be one key
}

// mayLead reports whether the tree at path may contain keys with the prefix.
func (n names) mayLead(path, prefix string) bool {
	name, below := strings.CutPrefix(path, n.root+"/")
	if n.pathTo != nil || !below {
		return true
	}
	key, ok := unescape(name)
	return ok && (strings.HasPrefix(key, prefix) || strings.HasPrefix(prefix, key+"/"))
}

// isAbove reports whether path is no lock although there may be locks below it.
func (n names) isAbove(path string) bool { return n.pathTo == nil && path == n.root }

// escape returns the part of a path that stands for key. It is the key itself whenever Java accepts
// it too. A key that ZooKeeper would refuse becomes one segment, with all bytes except a few in
// hexadecimal digits.
func escape(key string) string {
	if validPath("/" + key) {
		return key
	}
	var b strings.Builder
	b.WriteString(escaped)
	for i := range len(key) {
		if c := key[i]; isPlain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == ':'
}

// unescape undoes escape. The caller must check that escape makes name of the key again.
func unescape(name string) (key string, ok bool) {
	rest, found := strings.CutPrefix(name, escaped)
	if !found {
		return name, true
	}
	var b strings.Builder
	for rest != "" {
		if rest[0] != '%' {
			b.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		var c byte
		if len(rest) < 3 {
			return "", false
		}
		if _, err := fmt.Sscanf(rest[1:3], "%02X", &c); err != nil {
			return "", false
		}
		b.WriteByte(c)
		rest = rest[3:]
	}
	return b.String(), true
}

// validPath is the rule of ZooKeeper's own PathUtils, which the server and Java's client follow.
// Java counts UTF-16 code units, so characters beyond the first plane are made of surrogates and
// refused.
func validPath(path string) bool {
	if !strings.HasPrefix(path, "/") || !utf8.ValidString(path) {
		return false
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(path, func(r rune) bool {
		return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
	})
}
