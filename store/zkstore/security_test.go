// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

// Nodes that a user creates belong to that user only.
func TestNodesBelongToTheirUser(t *testing.T) {
	t.Parallel()
	root := newRoot()
	ours := locks(t, open(t, root, WithDigest("us", "secret")))
	lease := lock(t, ours, "key")
	acl, _, err := zktest.Connect(t, zktest.Servers(t)).GetACL(root)
	if err != nil && !errors.Is(err, zk.ErrNoAuth) {
		t.Fatal(err)
	}
	for _, a := range acl {
		if a.Scheme != "digest" || !strings.HasPrefix(a.ID, "us:") {
			t.Errorf("access control list: got %+v, want one for the user only", acl)
		}
	}
	for name, opts := range map[string][]Option{
		"nobody":             nil,
		"another user":       {WithDigest("them", "secret")},
		"the wrong password": {WithDigest("us", "guess")},
	} {
		theirs := locks(t, open(t, root, opts...))
		if _, err := theirs.TryLock(t.Context(), "key"); !errors.Is(err, store.ErrDenied) {
			t.Errorf("TryLock by %s: got %v, want ErrDenied", name, err)
		}
		if _, err := theirs.Lock(t.Context(), "another key"); !errors.Is(err, store.ErrDenied) {
			t.Errorf("Lock by %s: got %v, want ErrDenied", name, err)
		}
		if _, err := theirs.ForceUnlock(t.Context(), "key", 0); !errors.Is(err, store.ErrDenied) {
			t.Errorf("ForceUnlock by %s: got %v, want ErrDenied", name, err)
		}
	}
	again := locks(t, open(t, root, WithDigest("us", "secret")))
	if _, err := again.TryLock(t.Context(), "key"); !errors.Is(err, asynclock.ErrHeld) {
		t.Errorf("TryLock by the same user: got %v, want ErrHeld", err)
	}
	unlock(t, lease)
}

// A user is known again after a reconnection.
func TestCredentialsOutliveAConnection(t *testing.T) {
	t.Parallel()
	w, root := newWire(t), newRoot()
	c := locks(t, open(t, root, WithDigest("us", "secret"), WithDialer(w.dial)))
	unlock(t, lock(t, c, "key"))
	w.cut()
	w.mend()
	unlock(t, lock(t, c, "key"))
}

func TestAListOfOnesOwn(t *testing.T) {
	t.Parallel()
	root := newRoot()
	acl := []zk.ACL{{Perms: zk.PermRead | zk.PermCreate | zk.PermDelete, Scheme: "world", ID: "anyone"}}
	c := locks(t, open(t, root, WithACL(acl)))
	lease := lock(t, c, "key")
	got, _, err := zktest.Connect(t, zktest.Servers(t)).GetACL(root + "/key")
	if err != nil || len(got) != 1 || got[0] != acl[0] {
		t.Errorf("access control list: got %+v, %v, want %+v", got, err, acl)
	}
	unlock(t, lease)
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Option{
		"nil":                      nil,
		"relative root":            WithRoot("root"),
		"root with an end":         WithRoot("/root/"),
		"the root of all":          WithRoot("/"),
		"no way":                   WithKeyToPath(nil, nil),
		"session too short":        WithSessionTimeout(time.Millisecond),
		"session too long":         WithSessionTimeout(48 * time.Hour),
		"no tick":                  WithTickTime(0),
		"no user":                  WithDigest("", "x"),
		"user with a colon":        WithDigest("a:b", "x"),
		"no access control":        WithACL(nil),
		"no TLS":                   WithTLS(nil),
		"no dialer":                WithDialer(nil),
		"no logger":                WithLogger(nil),
		"only the way there":       WithKeyToPath(func(key string) string { return "/" + key }, nil),
		"only the way back":        WithKeyToPath(nil, func(string) (string, bool) { return "", false }),
		"a root that Java refuses": WithRoot("/a//b"),
	} {
		if _, err := Open([]string{"127.0.0.1:1"}, o); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("%s: got %v, want ErrInvalidOption", name, err)
		}
	}
	if _, err := Open(nil); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("no servers: got %v, want ErrInvalidOption", err)
	}
}

// Keys can be anywhere.
func TestKeysWhereTheApplicationWantsThem(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	c := locks(t, open(t, root, WithLogger(slog.New(slog.DiscardHandler)), WithKeyToPath(
		func(key string) string { return root + "/locks/" + strings.ToUpper(key) },
		func(path string) (string, bool) {
			name, ok := strings.CutPrefix(path, root+"/locks/")
			return strings.ToLower(name), ok
		})))
	lease := lock(t, c, "key")
	if exists, _, err := conn.Exists(root + "/locks/KEY"); err != nil || !exists {
		t.Errorf("the lock's path: got %v, %v, want it there", exists, err)
	}
	n := 0
	for info, err := range c.List(t.Context(), "k") {
		if n++; err != nil || info.Key != "key" {
			t.Errorf("List: got %+v, %v, want the key", info, err)
		}
	}
	if n != 1 {
		t.Errorf("List: got %d keys, want 1", n)
	}
	unlock(t, lease)
}
