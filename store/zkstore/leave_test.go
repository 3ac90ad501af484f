// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
	"github.com/asynclock/asynclock-go/watchdog"
)

// The deletion of a waiter's node, whose time was over, is lost with the connection,
// and the waiter asks anew. That node is as good as gone and must not make it the
// holder.
func TestANodeThatIsToGoGrantsNothing(t *testing.T) {
	t.Parallel()
	w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
	holder := locks(t, open(t, root))
	lease := lock(t, holder, "key")
	s := join(t, open(t, root, WithDialer(w.dial)), nil)
	r := waits("owner")
	r.WaiterTTL = time.Minute
	acquire(t, s, r)
	nodes, err := inOrder(children(t, conn, root))
	if err != nil || len(nodes) != 2 {
		t.Fatalf("got nodes %q, %v, want two", nodes, err)
	}
	w.drop(nodes[1].name) // what is sent about it next is its deletion
	r.WaiterTTL = time.Millisecond
	acquire(t, s, r) // which sets the time for which it is kept
	kit.Eventually(t, "the deletion that is lost", w.dropped)
	unlock(t, lease)
	var got store.AcquireReply
	r.WaiterTTL = time.Minute
	kit.Eventually(t, "an answer", func() bool {
		got = s.Acquire(t.Context(), []store.AcquireRequest{r})[0]
		return got.Err == nil
	})
	left := children(t, conn, root)
	if got.Status != store.Granted || len(left) != 1 || left[0] == nodes[1].name {
		t.Errorf("Acquire: got %+v and nodes %q, want a grant by another node than %q", got, left, nodes[1].name)
	}
}

// An owner has two nodes, since a request to create one was carried out late. When
// the first is removed by force, the second does not keep the key.
func TestTheOtherNodeOfAForcedHolderIsRemoved(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	st := open(t, root)
	s := join(t, st, nil)
	makeNode(t, st, st.conn, root+"/key/"+nodePrefix("owner", mutex), zk.FlagEphemeralSequential)
	if got := acquire(t, s, waits("owner")); got.Status != store.Granted {
		t.Fatalf("Acquire: got %+v, want a grant", got)
	}
	if names := children(t, conn, root); len(names) != 2 {
		t.Fatalf("nodes: got %q, want two", names)
	}
	if held, err := s.Force(t.Context(), "key", 0); !held || err != nil {
		t.Fatalf("Force: got %v, %v, want true", held, err)
	}
	kit.Eventually(t, "the end of the other node", func() bool { return len(children(t, conn, root)) == 0 })
}

// A client leaves while it is being queued.
func TestWhoLeavesWhileItAsksLeavesNothing(t *testing.T) {
	t.Parallel()
	w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
	lease := lock(t, locks(t, open(t, root)), "key")
	s := join(t, open(t, root, WithDialer(w.dial)), nil)
	r := waits("owner")
	r.WaiterTTL = time.Hour
	w.interpose(root+"/key/"+children(t, conn, root)[0], func() { // it begins to watch the node before its own
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if got := s.Acquire(t.Context(), []store.AcquireRequest{r})[0]; got.Err != nil {
		t.Fatal(got.Err)
	}
	kit.Eventually(t, "the end of its node", func() bool { return len(children(t, conn, root)) == 1 })
	unlock(t, lease)
}

// A release that may be uncertain comes while the holder's last request is under way. It gives back
// what the owner held, and says so.
func TestAReleaseIsToldWhatTheRequestBeforeItHeld(t *testing.T) {
	t.Parallel()
	w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
	st := open(t, root, WithDialer(w.dial))
	s := join(t, st, nil)
	acquire(t, s, waits("owner"))
	released := make(chan store.ReleaseReply, 1)
	w.interpose(root+"/key", func() { // it looks at its place once more
		go func() { // ends when that request has ended; the reply is read below
			released <- s.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "owner", Uncertain: true}})[0]
		}()
		kit.Eventually(t, "the withdrawal", func() bool {
			st.mu.Lock()
			defer st.mu.Unlock()
			return st.withdrawn.Has("owner")
		})
	})
	if got := s.Acquire(t.Context(), []store.AcquireRequest{waits("owner")})[0]; got.Status != store.Withdrawn || got.Err != nil {
		t.Errorf("Acquire: got %+v, want Withdrawn", got)
	}
	if got := <-released; !got.WasHeld || got.Err != nil {
		t.Errorf("Release: got %+v, want that the key was held", got)
	}
	if names := children(t, conn, root); len(names) != 0 {
		t.Errorf("nodes: got %q, want none", names)
	}
}

// A search for an owner's late node leaves alone the node that the owner has made since.
func TestAnOwnerThatIsBackKeepsItsNode(t *testing.T) {
	t.Parallel()
	w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
	st := open(t, root, WithDialer(w.dial))
	s := join(t, st, nil)
	if err := st.makeLock(root + "/key"); err != nil {
		t.Fatal(err)
	}
	o := &orphan{of: newLockNode(s.(*session), "owner", target{root + "/key", mutex})}
	looking, answered := make(chan struct{}), make(chan store.AcquireReply, 1)
	// The owner's node is made, and nobody in the store knows of it yet.
	w.interpose(root+"/key/"+nodePrefix("owner", mutex)+"0", func() {
		go func() { // ends when it has looked, which waits for the owner
			defer close(looking)
			o.remove()
		}()
		time.Sleep(50 * time.Millisecond) // if it did not wait, it would be done by now
	})
	answered <- acquire(t, s, waits("owner"))
	<-looking
	if got := <-answered; got.Status != store.Granted || len(children(t, conn, root)) != 1 {
		t.Errorf("Acquire: got %+v and nodes %q, want a grant and its node", got, children(t, conn, root))
	}
	if len(st.lockNodes) != 1 {
		t.Errorf("stakes: got %d, want the owner's", len(st.lockNodes))
	}
}

// An owner that comes while its late node is being searched waits for the end of the search.
func TestAnOwnerWaitsForTheLookAtItsLateNode(t *testing.T) {
	t.Parallel()
	w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
	st := open(t, root, WithDialer(w.dial))
	s := join(t, st, nil)
	late := makeNode(t, st, conn, root+"/key/"+nodePrefix("owner", mutex), zk.FlagEphemeralSequential)
	answered := make(chan store.AcquireReply, 1)
	w.interpose(late, func() { // its deletion
		go func() { // ends with the answer
			answered <- s.Acquire(t.Context(), []store.AcquireRequest{waits("owner")})[0]
		}()
	})
	o := &orphan{of: newLockNode(s.(*session), "owner", target{root + "/key", mutex})}
	o.remove()
	got := <-answered
	if names := children(t, conn, root); got.Err != nil || got.Status != store.Granted || len(names) != 1 || root+"/key/"+names[0] == late {
		t.Errorf("Acquire: got %+v and nodes %q, want a grant by a node of its own", got, names)
	}
}

// The server that refuses is not asked each second for ever.
func TestRefusalsMakeRetriesRare(t *testing.T) {
	refused := fmt.Errorf("%w: no", store.ErrDenied)
	n, last := 0, time.Duration(0)
	for range 100 {
		d := retryAfter(refused, &n)
		if d < last || d < retryIn || d > longestRetry {
			t.Fatalf("pause after a refusal: got %v after %v, want it longer, up to %v", d, last, longestRetry)
		}
		last = d
	}
	if last != longestRetry {
		t.Errorf("pause after many refusals: got %v, want %v", last, longestRetry)
	}
	for _, err := range []error{store.ErrUnreachable, store.ErrOutcomeUnknown} {
		if d := retryAfter(err, &n); d != retryIn {
			t.Errorf("pause after %v: got %v, want %v", err, d, retryIn)
		}
	}
}

// A lock node that has ended with its session is not tried again: another may have its
// name.
func TestWhatIsOverIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	st := open(t, newRoot())
	k := newLockNode(join(t, st, nil).(*session), "owner", target{"/lock", mutex})
	st.mu.Lock()
	defer st.mu.Unlock()
	k.forgetLocked()
	k.leaveAgainLocked(store.ErrUnreachable)
	if k.until > watchdog.Now() {
		t.Error("the end of the stake is ahead, want it over")
	}
}
