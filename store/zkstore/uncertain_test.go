// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

func waits(owner string) store.AcquireRequest {
	return store.AcquireRequest{
		Key: "key", Owner: owner, Wait: true,
		TTL: time.Minute, GrantTTL: time.Minute, WaiterTTL: time.Minute,
	}
}

// children lists what is below the test's lock.
func children(t testing.TB, conn *zk.Conn, root string) []string {
	t.Helper()
	names, _, err := conn.Children(root + "/key")
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	return names
}

// makeNode makes a node in a lock, and the lock again if the server has removed it in between,
// because it was empty. It returns the node's path.
func makeNode(t testing.TB, st *Store, conn *zk.Conn, path string, flags int32) (made string) {
	t.Helper()
	lock := path[:strings.LastIndex(path, "/")]
	kit.Eventually(t, "a node", func() bool {
		if err := st.makeLock(lock); err != nil {
			t.Fatal(err)
		}
		var err error
		made, err = conn.Create(path, nil, flags, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			t.Fatal(err)
		}
		return err == nil
	})
	return made
}

// A creation whose answer is lost is found by its name, and not repeated.
func TestANodeOfAnUnansweredCreationIsFound(t *testing.T) {
	t.Parallel()
	w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
	st := open(t, root, WithDialer(w.dial))
	s := join(t, st, nil)
	acquire(t, s, store.AcquireRequest{Key: "key", Owner: "first", TTL: time.Minute}) // makes the lock
	w.lose(nodePrefix("owner", mutex))
	got := s.Acquire(t.Context(), []store.AcquireRequest{waits("owner")})[0]
	if !errors.Is(got.Err, store.ErrOutcomeUnknown) {
		t.Fatalf("Acquire whose answer is lost: got %+v, want ErrOutcomeUnknown", got)
	}
	kit.Eventually(t, "the node", func() bool { return len(children(t, conn, root)) == 2 })
	kit.Eventually(t, "an answer", func() bool {
		got = s.Acquire(t.Context(), []store.AcquireRequest{waits("owner")})[0]
		return got.Err == nil
	})
	if names := children(t, conn, root); got.Status != store.Waiting || got.Rank != 0 || len(names) != 2 {
		t.Errorf("Acquire again: got %+v among %q, want the one node found, first in the queue", got, names)
	}
}

// One that is given up is removed.
func TestANodeOfAnUnansweredCreationIsRemoved(t *testing.T) {
	t.Parallel()
	w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
	s := join(t, open(t, root, WithDialer(w.dial)), nil)
	acquire(t, s, store.AcquireRequest{Key: "key", Owner: "first", TTL: time.Minute})
	w.lose(nodePrefix("owner", mutex))
	s.Acquire(t.Context(), []store.AcquireRequest{waits("owner")})
	kit.Eventually(t, "the node", func() bool { return len(children(t, conn, root)) == 2 })
	kit.Eventually(t, "the withdrawal", func() bool {
		return s.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "owner", Uncertain: true}})[0].Err == nil
	})
	if names := children(t, conn, root); len(names) != 1 {
		t.Errorf("nodes after the withdrawal: got %q, want the holder's only", names)
	}
	if got := acquire(t, s, waits("owner")); got.Status != store.Withdrawn {
		t.Errorf("a late Acquire: got %+v, want Gone", got)
	}
}

// And so is one whose creation takes effect only after its owner was withdrawn.
func TestANodeThatComesLateIsRemoved(t *testing.T) {
	t.Parallel()
	w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
	s := join(t, open(t, root, WithDialer(w.dial), WithSessionTimeout(2*time.Second)), nil)
	acquire(t, s, store.AcquireRequest{Key: "key", Owner: "first", TTL: time.Minute})
	w.lose(nodePrefix("owner", mutex))
	s.Acquire(t.Context(), []store.AcquireRequest{waits("owner")})
	kit.Eventually(t, "the withdrawal", func() bool {
		return s.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "owner", Uncertain: true}})[0].Err == nil
	})
	late, err := conn.Create(root+"/key/"+nodePrefix("owner", mutex), nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the end of the late node", func() bool {
		exists, _, err := conn.Exists(late)
		return err == nil && !exists
	})
}

// An owner that has two nodes, since one came late, has the place of the first, and
// leaves none.
func TestTwoNodesOfOneOwnerAreOne(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	s := join(t, open(t, root), nil)
	acquire(t, s, store.AcquireRequest{Key: "key", Owner: "first", TTL: time.Minute})
	if _, err := conn.Create(root+"/key/"+nodePrefix("owner", mutex), nil, zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	got := acquire(t, s, waits("owner"))
	if got.Status != store.Waiting || got.Rank != 0 {
		t.Errorf("Acquire: got %+v, want the first place", got)
	}
	if got := s.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "owner"}})[0]; got.WasHeld || got.Err != nil {
		t.Errorf("Release: got %+v, want that it has waited", got)
	}
	if names := children(t, conn, root); len(names) != 1 {
		t.Errorf("nodes after the release: got %q, want the holder's only", names)
	}
}

// A release whose answer is lost is repeated, and does nobody else any harm.
func TestAnUnansweredReleaseIsRepeated(t *testing.T) {
	t.Parallel()
	w, root := newWire(t), newRoot()
	ours, theirs := locks(t, open(t, root, WithDialer(w.dial))), locks(t, open(t, root))
	lease := lock(t, ours, "key")
	pending := theirs.LockChan(t.Context(), "key")
	wantWaiters(t, theirs, "key", 1)
	w.lose("-lock-")
	unlock(t, lease)
	next := claim(t, pending)
	unlock(t, lock(t, ours, "other"))
	if next.Err() != nil {
		t.Errorf("the next lease: got %v, want it valid", next.Err())
	}
	unlock(t, next)
}

// The store does not guess about nodes that are no proper nodes of a lock.
func TestNodesThatOverflowAreForeign(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	st := open(t, root)
	c := locks(t, st)
	unlock(t, lock(t, c, "key"))
	foreign := root + "/key/_c_0-lock--2147483648"
	makeNode(t, st, conn, foreign, 0)
	if _, err := c.Lock(t.Context(), "key"); !errors.Is(err, store.ErrForeignData) {
		t.Errorf("Lock: got %v, want ErrForeignData", err)
	}
	kit.Eventually(t, "our own node to be gone", func() bool { return len(children(t, conn, root)) == 1 })
	if err := conn.Delete(foreign, -1); err != nil {
		t.Fatal(err)
	}
	unlock(t, lock(t, c, "key"))
}

// Below a lock may be others.
func TestKeysBelowKeys(t *testing.T) {
	t.Parallel()
	root := newRoot()
	c := locks(t, open(t, root))
	outer, inner := lock(t, c, "a"), lock(t, c, "a/b")
	if outer.Err() != nil || inner.Err() != nil {
		t.Errorf("got %v and %v, want both held", outer.Err(), inner.Err())
	}
	var keys []string
	for info, err := range c.List(t.Context(), "a/") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	if strings.Join(keys, " ") != "a/b" {
		t.Errorf("List: got %q, want a/b", keys)
	}
	unlock(t, outer)
	unlock(t, inner)
}

// A key that looks like an owner's node is none where there is no lock above it, nor
// if its number is too short.
func TestKeysThatLookLikeNodes(t *testing.T) {
	t.Parallel()
	c := locks(t, open(t, newRoot()))
	keys := []string{"a", "a/block-42", "lock-0000000001", "lock-1"}
	for _, key := range keys {
		lease, err := c.TryLock(t.Context(), key)
		if err != nil {
			t.Fatalf("TryLock(%q): got %v, want it free", key, err)
		}
		defer unlock(t, lease)
	}
	var listed []string
	for info, err := range c.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if listed = append(listed, info.Key); info.Waiters != 0 {
			t.Errorf("waiters for %q: got %d, want none", info.Key, info.Waiters)
		}
	}
	slices.Sort(listed)
	if !slices.Equal(listed, keys) {
		t.Errorf("List: got %q, want %q", listed, keys)
	}
	if _, err := c.TryLock(t.Context(), "a/lock-0000000001"); !errors.Is(err, store.ErrInvalidKey) {
		t.Errorf("TryLock of what would wait for another key: got %v, want ErrInvalidKey", err)
	}
}
