// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

// The nodes are those of Curator's InterProcessMutex.
func TestNodesAreCurators(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	c := locks(t, open(t, root), asynclock.WithDescription("somebody"))
	lease := lock(t, c, "a/key")
	names, _, err := conn.Children(root + "/a/key")
	if err != nil || len(names) != 1 {
		t.Fatalf("got nodes %q, %v, want one", names, err)
	}
	if len(names[0]) != len("_c_")+36+len("-lock-")+10 || !isNode(names[0]) {
		t.Errorf("got node %q, want Curator's form", names[0])
	}
	data, stat, err := conn.Get(root + "/a/key/" + names[0])
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != "somebody" || stat.EphemeralOwner == 0 || firstToken(stat.Czxid) != lease.Token() {
		t.Errorf("got %q of %#x, created by %#x; want the holder's description, an ephemeral node, and token %d made of its zxid", data, stat.EphemeralOwner, stat.Czxid, lease.Token())
	}
	unlock(t, lease)
	// Which it does with containers only.
	kit.Eventually(t, "the server to remove the empty lock", func() bool {
		exists, _, err := conn.Exists(root + "/a/key")
		return err == nil && !exists
	})
}

// A release wakes the next waiter and nobody else.
func TestAReleaseWakesOnlyTheNext(t *testing.T) {
	t.Parallel()
	root := newRoot()
	holder := locks(t, open(t, root))
	lease := lock(t, holder, "key", asynclock.WithTTL(time.Hour)) // heartbeats are three seconds apart
	const waiters = 4
	var wires [waiters]*wire
	var pending [waiters]<-chan asynclock.Result
	for i := range pending {
		wires[i] = newWire(t)
		st := open(t, root, WithDialer(wires[i].dial))
		pending[i] = locks(t, st).LockChan(t.Context(), "key", asynclock.WithTTL(time.Hour))
		wantWaiters(t, holder, "key", i+1)
		// Its node is counted before it has looked at the one ahead, which takes packets.
		kit.Eventually(t, "the waiter to have nothing more to ask", func() bool { return isWatching(st) })
	}
	// A heartbeat may fall into one handoff, but not into most of them.
	quiet := 0
	for i := range pending {
		var before [waiters]int
		for j := range wires {
			before[j] = wires[j].packets()
		}
		unlock(t, lease)
		lease = claim(t, pending[i])
		for j := i + 1; j < waiters; j++ {
			if wires[j].packets() == before[j] {
				quiet++
			}
		}
	}
	unlock(t, lease)
	if all := waiters * (waiters - 1) / 2; quiet <= all/2 {
		t.Errorf("waiters that stayed quiet while another was served: got %d of %d, want most", quiet, all)
	}
}

// isWatching reports whether the store has one lock node, which waits for a message and asks
// for nothing.
func isWatching(st *Store) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, k := range st.lockNodes {
		return k.phase == waiting && k.watched && k.before != "" && len(k.busy) == 0
	}
	return false
}

// A key passes inside a client, with tokens that rise, and all of them are less than
// those of the next client.
func TestTokensOfACohortRise(t *testing.T) {
	t.Parallel()
	root := newRoot()
	ours, theirs := locks(t, open(t, root)), locks(t, open(t, root))
	lease := lock(t, ours, "key")
	first, last := lease.Token(), lease.Token()
	for range 2*spare + 10 { // so many that the store has to be asked for more
		pending := ours.LockChan(t.Context(), "key")
		unlock(t, lease)
		lease = claim(t, pending)
		if lease.Token() <= last {
			t.Fatalf("token: got %d after %d, want more", lease.Token(), last)
		}
		last = lease.Token()
	}
	if last-first <= spare {
		t.Errorf("tokens: got %d to %d, want more than one grant's", first, last)
	}
	unlock(t, lease)
	if next := lock(t, theirs, "key"); next.Token() <= last {
		t.Errorf("token of the next client: got %d after %d, want more", next.Token(), last)
	}
}

// Nothing is written to the keys to renew them.
func TestRenewalsCostNothingPerKey(t *testing.T) {
	t.Parallel()
	w, root := newWire(t), newRoot()
	s := join(t, open(t, root, WithDialer(w.dial)), nil)
	var renews []store.RenewRequest
	for i := range 50 {
		r := waits(string(rune('a' + i)))
		r.Key = "key/" + r.Owner
		acquire(t, s, r)
		renews = append(renews, store.RenewRequest{Key: r.Key, Owner: r.Owner, TTL: time.Minute})
	}
	s.Renew(t.Context(), renews) // counts waiters, and watches from then on
	before := w.packets()
	for range 10 {
		for _, reply := range s.Renew(t.Context(), renews) {
			if reply.Err != nil || reply.TTL <= 0 {
				t.Fatalf("Renew: got %+v, want a promise", reply)
			}
		}
	}
	if got := w.packets() - before; got > 5 { // a heartbeat may be among them
		t.Errorf("packets for 500 renewals: got %d, want none", got)
	}
}

// A node that somebody deletes is a lease that somebody has ended.
func TestADeletedNodeEndsTheLease(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	c := locks(t, open(t, root))
	lease := lock(t, c, "key")
	if err := conn.Delete(root+"/key/"+children(t, conn, root)[0], -1); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, lease)
	if got := lease.Err(); got == nil || got.Error() != asynclock.ErrForced.Error() {
		t.Errorf("got %v, want ErrForced", got)
	}
}

func revoke(t *testing.T, conn *zk.Conn, root string) {
	t.Helper()
	if _, err := conn.Set(root+"/key/"+children(t, conn, root)[0], []byte(revokeData), -1); err != nil {
		t.Fatal(err)
	}
}

// A holder that has agreed to it is requested to give up, and gives up.
func TestARevokedLeaseEnds(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	ours, theirs := locks(t, open(t, root, WithRevocation())), locks(t, open(t, root))
	lease := lock(t, ours, "key")
	pending := theirs.LockChan(t.Context(), "key")
	wantWaiters(t, theirs, "key", 1)
	nodes, err := inOrder(children(t, conn, root))
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"something else", revokeData} { // after the first, it is watched still
		if _, err := conn.Set(root+"/key/"+nodes[0].name, []byte(data), -1); err != nil {
			t.Fatal(err)
		}
	}
	awaitEnd(t, lease)
	select {
	case <-pending:
		t.Error("the key went on before the holder has unlocked it, want it kept until then")
	default:
	}
	_ = lease.Unlock(t.Context()) // which has noticed
	unlock(t, claim(t, pending))
}

// A holder that has not agreed is not notified.
func TestNobodyIsRevokedUnasked(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	c := locks(t, open(t, root))
	lease := lock(t, c, "key")
	revoke(t, conn, root)
	if _, err := c.Inspect(t.Context(), "key"); err != nil { // it is behind the event on the same connection
		t.Fatal(err)
	}
	if err := lease.Renew(t.Context(), time.Minute); err != nil || lease.Err() != nil {
		t.Errorf("got %v and %v, want the lease to go on", err, lease.Err())
	}
	// It is watched still.
	if err := conn.Delete(root+"/key/"+children(t, conn, root)[0], -1); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, lease)
}
