// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

// wantLost checks that a renewal finds the lease's end.
func wantLost(t *testing.T, lease *asynclock.Lease) {
	t.Helper()
	if err := lease.Renew(t.Context(), time.Minute); !errors.Is(err, store.ErrLost) {
		t.Fatalf("Renew of what somebody has deleted: got %v, want ErrLost", err)
	}
}

// unwatched returns a lease of "key" whose node nobody watches: somebody has written to the node, and
// the connection broke before the node was watched again.
func unwatched(t *testing.T) (lease *asynclock.Lease, root, node string, conn *zk.Conn) {
	t.Helper()
	w := newWire(t)
	root, conn = newRoot(), zktest.Connect(t, zktest.Servers(t))
	lease = lock(t, locks(t, open(t, root, WithDialer(w.dial))), "key", asynclock.WithTTL(time.Hour))
	node = root + "/key/" + children(t, conn, root)[0]
	w.drop(node)
	if _, err := conn.Set(node, []byte("something"), -1); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the end of the connection", w.dropped)
	return lease, root, node, conn
}

// Somebody has written to the holder's node, and the connection breaks before the
// node is watched again. That it is deleted then, nobody tells.
func TestAnUnwatchedHoldingIsNotRenewed(t *testing.T) {
	t.Parallel()
	lease, root, node, conn := unwatched(t)
	if err := conn.Delete(node, -1); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "an answer", func() bool {
		err := lease.Renew(t.Context(), time.Minute)
		return err == nil || errors.Is(err, store.ErrLost)
	})
	wantLost(t, lease)
	unlock(t, lock(t, locks(t, open(t, root)), "key"))
}

// One that is not deleted is renewed, and watched from then on.
func TestARenewalWatchesAgain(t *testing.T) {
	t.Parallel()
	lease, _, node, conn := unwatched(t)
	kit.Eventually(t, "a renewal", func() bool { return lease.Renew(t.Context(), time.Minute) == nil })
	if err := conn.Delete(node, -1); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, lease)
}

// A node is written to and deleted at once, so that the watch tells of the first
// and the second is not there to be watched.
func TestANodeThatIsGoneBeforeItIsWatchedAgain(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	lease := lock(t, locks(t, open(t, root)), "key", asynclock.WithTTL(time.Hour), asynclock.WithRenewal(false))
	node := root + "/key/" + children(t, conn, root)[0]
	if _, err := conn.Multi(&zk.SetDataRequest{Path: node, Version: -1}, &zk.DeleteRequest{Path: node, Version: -1}); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, lease)
	if !errors.Is(lease.Err(), asynclock.ErrForced) {
		t.Errorf("the lease: got %v, want ErrForced", lease.Err())
	}
}

// A client that repeats its request for a key that is held for long watches the holder's node only
// once. The client library keeps each request for a watch until the watch fires.
func TestAHeldKeyIsWatchedOnce(t *testing.T) {
	t.Parallel()
	w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
	lease := lock(t, locks(t, open(t, root)), "key")
	ours := locks(t, open(t, root, WithDialer(w.dial)))
	w.count(root + "/key/" + children(t, conn, root)[0] + "\x01") // which asks for a watch
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		pending := ours.LockChan(ctx, "key")
		wantWaiters(t, ours, "key", 1)
		cancel()
		<-pending
		wantWaiters(t, ours, "key", 0)
	}
	if got := w.packetsCounted(); got > 1 {
		t.Errorf("watches of the holder's node: got %d, want one", got)
	}
	pending := ours.LockChan(t.Context(), "key")
	wantWaiters(t, ours, "key", 1)
	unlock(t, lease)
	unlock(t, claim(t, pending))
}
