// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

// Nodes above the root may belong to somebody else, as long as the root exists.
func TestAboveTheRootNothingIsAsked(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	readers := []zk.ACL{{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}}
	st := open(t, root)
	if err := st.makeLock(root); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Create(root+"/locks", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.SetACL(root, readers, -1); err != nil {
		t.Fatal(err)
	}
	c := locks(t, open(t, root+"/locks"))
	for _, key := range []string{"key", "a/deeper/key"} {
		unlock(t, lock(t, c, key))
	}
}

// The rights that doc.go asks for on the root are enough, and needed.
func TestRightsOnTheRoot(t *testing.T) {
	t.Parallel()
	conn := zktest.Connect(t, zktest.Servers(t))
	for perms, want := range map[int32]error{zk.PermRead | zk.PermCreate: nil, zk.PermRead: store.ErrDenied, zk.PermCreate: store.ErrDenied} {
		root := newRoot()
		st := open(t, root)
		if err := st.makeLock(root); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.SetACL(root, []zk.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}, -1); err != nil {
			t.Fatal(err)
		}
		c := locks(t, st)
		lease, err := c.TryLock(t.Context(), "key")
		for _, listed := range c.List(t.Context(), "") {
			err = cmp.Or(err, listed)
		}
		if err == nil {
			err = lease.Unlock(t.Context())
		}
		if !errors.Is(err, want) {
			t.Errorf("rights %05b on the root: got %v, want %v", perms, err, want)
		}
	}
}

// The driver has no name for what a server answers that does not know a request.
func TestWhatAServerDoesNotSupport(t *testing.T) {
	t.Parallel()
	conn := zktest.Connect(t, zktest.Servers(t)) // of whom nodes that end by themselves are forbidden
	_, err := conn.CreateTTL(newRoot()+"/x", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Second)
	if !unsupported(err) {
		t.Errorf("a request that is not supported: got %v, want it known as such", err)
	}
	for _, err := range []error{nil, zk.ErrConnectionClosed, zk.ErrNoNode, zk.ErrUnknown, zk.ErrSessionMoved} {
		if unsupported(err) {
			t.Errorf("%v is taken for a request that is not supported", err)
		}
	}
}

// A connection that breaks while a lock is made does not mean that the server knows
// no containers: locks made otherwise stay for ever.
func TestLocksStayContainers(t *testing.T) {
	t.Parallel()
	w, root := newWire(t), newRoot()
	two := append(zktest.Servers(t), zktest.Servers(t)...) // what was not sent to the first is sent to the second
	st := openOn(t, two, root, WithDialer(w.dial))
	if err := st.makeLock(root); err != nil {
		t.Fatal(err)
	}
	w.drop(root)
	if err := st.makeLock(root + "/key"); err == nil {
		t.Error("makeLock whose request is lost: got no error, want one")
	}
	kit.Eventually(t, "an answer", func() bool { return st.makeLock(root+"/key") == nil })
	if st.parents.Load() != &container {
		t.Error("locks are persistent from now on, want containers")
	}
}
