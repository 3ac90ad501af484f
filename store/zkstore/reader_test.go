// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

// reads is waits for a reader.
func reads(owner string) store.AcquireRequest {
	r := waits(owner)
	r.Share.Mode = store.Shared
	return r
}

// wantStatus makes a request.
func wantStatus(t *testing.T, s store.Session, r store.AcquireRequest, want store.AcquireStatus) store.AcquireReply {
	t.Helper()
	reply := acquire(t, s, r)
	if reply.Status != want {
		t.Fatalf("Acquire of %q: got status %d, want %d", r.Owner, reply.Status, want)
	}
	return reply
}

// end releases what the owner has.
func end(t *testing.T, s store.Session, owner string) {
	t.Helper()
	if reply := s.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: owner}})[0]; reply.Err != nil {
		t.Fatalf("Release of %q: got %v, want no error", owner, reply.Err)
	}
}

// kindsAmong are the kinds of the nodes of the test's lock, in their order.
func kindsAmong(t *testing.T, conn *zk.Conn, root string) (kinds []kind) {
	t.Helper()
	for _, n := range nodesAmong(children(t, conn, root)) {
		kinds = append(kinds, n.kind)
	}
	return kinds
}

// The nodes are those of Curator's InterProcessReadWriteLock.
func TestNodesOfReadersAreCurators(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	s := join(t, open(t, root, ofAllKeys), nil)
	r := reads("reader")
	r.Description = "somebody"
	wantStatus(t, s, r, store.Granted)
	wantStatus(t, s, waits("writer"), store.Waiting)
	nodes := nodesAmong(children(t, conn, root))
	form := regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-__READ__0000000000
_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-__WRIT__0000000001$`)
	if got := strings.Join(nodeNames(nodes), "\n"); !form.MatchString(got) {
		t.Fatalf("nodes: got %q, want a reader and a writer in Curator's form", got)
	}
	data, stat, err := conn.Get(root + "/key/" + nodes[0].name)
	if err != nil || string(data) != "somebody" || stat.EphemeralOwner == 0 {
		t.Errorf("a reader's node: got %q, session %#x, %v; want the description and an ephemeral node", data, stat.EphemeralOwner, err)
	}
}

// A store that has readers for some keys refuses them for others, and changes nothing there.
func TestOnlyChosenKeysHaveReaders(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	st := open(t, root, WithReadWriteKeys(func(key string) bool { return strings.HasPrefix(key, "shared/") }))
	s := join(t, st, nil)
	if got := s.Acquire(t.Context(), []store.AcquireRequest{reads("reader")})[0]; !errors.Is(got.Err, store.ErrUnsupported) {
		t.Errorf("Acquire of a reader: got %+v, want ErrUnsupported", got)
	}
	if exists, _, err := conn.Exists(root); exists || err != nil {
		t.Errorf("the root after a refusal: got %v, %v, want that nothing was made", exists, err)
	}
	wantStatus(t, s, waits("owner"), store.Granted)
	rest := store.ReleaseRequest{Key: "key", Owner: "owner", Rest: &store.Share{Mode: store.Shared}}
	if got := s.Release(t.Context(), []store.ReleaseRequest{rest})[0]; !errors.Is(got.Err, store.ErrUnsupported) {
		t.Errorf("Release with a Rest: got %+v, want ErrUnsupported", got)
	}
	if got := kindsAmong(t, conn, root); !slices.Equal(got, []kind{mutex}) {
		t.Errorf("nodes: got kinds %v, want the mutex that was there", got)
	}
	r := reads("reader")
	r.Key = "shared/key"
	wantStatus(t, s, r, store.Granted)
}

// watched is the name of the node that an owner's lock node waits for, of what owners have.
func watched(st *Store, owner string) string {
	st.mu.Lock()
	defer st.mu.Unlock()
	if k := st.lockNodes[owner]; k != nil && k.phase == waiting {
		return k.before[strings.LastIndexByte(k.before, '/')+1:]
	}
	return ""
}

// A reader watches the nearest writer before it, and a writer the node before it.
func TestAReaderWatchesTheNearestWriter(t *testing.T) {
	t.Parallel()
	st := open(t, newRoot(), ofAllKeys)
	s := join(t, st, nil)
	wantStatus(t, s, waits("holder"), store.Granted)
	wantStatus(t, s, waits("writer"), store.Waiting)
	wantStatus(t, s, reads("one"), store.Waiting)
	wantStatus(t, s, reads("two"), store.Waiting)
	wantStatus(t, s, waits("last"), store.Waiting)
	for owner, want := range map[string]string{
		"one": nodePrefix("writer", writer), "two": nodePrefix("writer", writer), "last": nodePrefix("two", reader),
	} {
		if got := watched(st, owner); !strings.HasPrefix(got, want) {
			t.Errorf("%q waits for %q, want %q", owner, got, want)
		}
	}
	end(t, s, "writer")
	for _, owner := range []string{"one", "two"} {
		kit.Eventually(t, "the reader to wait for the holder", func() bool {
			return strings.HasPrefix(watched(st, owner), nodePrefix("holder", writer))
		})
	}
	end(t, s, "holder")
	wantStatus(t, s, reads("one"), store.Granted)
	wantStatus(t, s, reads("two"), store.Granted)
}

// Programs that disagree about whether a key has readers are refused as soon as they meet. The holder
// goes on, and nobody else leaves a node.
func TestMutexesAndReadersAreNotMixed(t *testing.T) {
	t.Parallel()
	for _, first := range []kind{mutex, writer, reader} {
		root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
		plain, readers := join(t, open(t, root), nil), join(t, open(t, root, ofAllKeys), nil)
		holder, other, request := readers, plain, waits("holder")
		switch first {
		case mutex:
			holder, other = plain, readers
		case reader:
			request = reads("holder")
		case writer:
		}
		wantStatus(t, holder, request, store.Granted)
		try := waits("try")
		try.Wait = false
		for _, r := range []store.AcquireRequest{waits("other"), try} {
			if got := other.Acquire(t.Context(), []store.AcquireRequest{r})[0]; !errors.Is(got.Err, store.ErrForeignData) {
				t.Errorf("Acquire of %q beside kind %d: got %+v, want ErrForeignData", r.Owner, first, got)
			}
		}
		if got := kindsAmong(t, conn, root); !slices.Equal(got, []kind{first}) {
			t.Errorf("nodes: got kinds %v, want the holder's, %d", got, first)
		}
		info, err := other.Inspect(t.Context(), "key")
		if want := first == reader; err != nil || !info.Held || (info.Mode == store.Shared) != want {
			t.Errorf("Inspect by the other program: got %+v, %v, want it held, shared %v", info, err, want)
		}
		makeNode(t, holder.(*session).store, conn, root+"/key/foreign-"+marks[mutex]+marks[writer], zk.FlagSequence)
		makeNode(t, holder.(*session).store, conn, root+"/key/foreign-"+marks[mutex], zk.FlagSequence)
		if _, err := other.Inspect(t.Context(), "key"); !errors.Is(err, store.ErrForeignData) {
			t.Errorf("Inspect of both: got %v, want ErrForeignData", err)
		}
		if _, err := other.Force(t.Context(), "key", 0); !errors.Is(err, store.ErrForeignData) {
			t.Errorf("Force of both: got %v, want ErrForeignData", err)
		}
		if got := holder.Acquire(t.Context(), []store.AcquireRequest{request})[0]; !errors.Is(got.Err, store.ErrForeignData) {
			t.Errorf("Acquire of the holder again: got %+v, want ErrForeignData", got)
		}
		if got := holder.Renew(t.Context(), []store.RenewRequest{{Key: "key", Owner: "holder", TTL: time.Minute, Share: request.Share}})[0]; got.Err != nil {
			t.Errorf("Renew of the holder: got %v, want no error", got.Err)
		}
	}
}

// A waiter whose request changes from a writer's to a reader's comes back at the tail.
func TestAWaiterThatChangesLosesItsPlace(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	s := join(t, open(t, root, ofAllKeys), nil)
	wantStatus(t, s, reads("holder"), store.Granted)
	wantStatus(t, s, waits("changes"), store.Waiting)
	wantStatus(t, s, waits("writer"), store.Waiting)
	wantStatus(t, s, reads("changes"), store.Waiting)
	if got := kindsAmong(t, conn, root); !slices.Equal(got, []kind{reader, writer, reader}) {
		t.Errorf("nodes: got kinds %v, want a reader, a writer and a reader", got)
	}
}

// All readers of a store are told of the first waiter, though their lock's children are watched once.
func TestAllReadersAreToldOfAWriter(t *testing.T) {
	t.Parallel()
	root := newRoot()
	st := open(t, root, ofAllKeys)
	told := make(chan string, 10)
	note := func(e store.Event) {
		if e.Kind == store.EventQueued {
			told <- e.Owner
		}
	}
	for _, owner := range []string{"one", "two", "three"} {
		r := reads(owner)
		r.NotifyQueued = true
		if got := wantStatus(t, join(t, st, note), r, store.Granted); got.Waiters != 0 {
			t.Errorf("waiters: got %d, want none", got.Waiters)
		}
	}
	kit.Eventually(t, "the readers to be counted for", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return len(st.counted[root+"/key"]) == 3
	})
	wantStatus(t, join(t, open(t, root, ofAllKeys), nil), waits("writer"), store.Waiting)
	var owners []string
	for range 3 {
		select {
		case owner := <-told:
			owners = append(owners, owner)
		case <-time.After(testPatience):
			t.Fatalf("told: got %q, want all three", owners)
		}
	}
	slices.Sort(owners)
	if !slices.Equal(owners, []string{"one", "three", "two"}) {
		t.Errorf("told: got %q, want each once", owners)
	}
}

// The token of one reader is enough to force all that read with it, and no other token is.
func TestForceByTheTokenOfAReader(t *testing.T) {
	t.Parallel()
	root := newRoot()
	s := join(t, open(t, root, ofAllKeys), nil)
	first := wantStatus(t, s, reads("one"), store.Granted)
	last := wantStatus(t, s, reads("two"), store.Granted)
	wantStatus(t, s, waits("writer"), store.Waiting)
	held, err := s.Force(t.Context(), "key", last.Fence+1)
	var other *store.OtherHolderError
	if held || !errors.As(err, &other) || other.Info.Token != last.Fence || len(other.Info.Holders) != 2 || other.Info.Waiters != 1 {
		t.Fatalf("Force by another token: got %v, %v, want an OtherHolderError with two readers and token %d", held, err, last.Fence)
	}
	if held, err := s.Force(t.Context(), "key", first.Fence); !held || err != nil {
		t.Fatalf("Force by the first reader's token: got %v, %v, want true", held, err)
	}
	wantStatus(t, s, waits("writer"), store.Granted)
}

// The readers of a client share a node, and a resource that remembers the tokens of writers refuses the
// writer before.
func TestReadersOfAClientShareANode(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	c := locks(t, open(t, root, ofAllKeys))
	before := lock(t, c, "key")
	unlock(t, before)
	var readers []*asynclock.Lease
	for range 3 {
		l, err := c.RLock(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, l)
	}
	if got := kindsAmong(t, conn, root); !slices.Equal(got, []kind{reader}) {
		t.Errorf("nodes: got kinds %v, want one reader", got)
	}
	for _, l := range readers {
		if l.Token() != readers[0].Token() || l.Token() <= before.Token() {
			t.Errorf("token: got %d, want %d as of the first, and more than the writer's %d", l.Token(), readers[0].Token(), before.Token())
		}
		unlock(t, l)
	}
}

// A mutex that comes beside a writer is logged, because Java would let it in.
func TestAMixtureBesideAHolderIsLogged(t *testing.T) {
	t.Parallel()
	root, conn, journal := newRoot(), zktest.Connect(t, zktest.Servers(t)), new(kit.Journal)
	st := open(t, root, ofAllKeys, WithLogger(journal.Logger(slog.LevelWarn)))
	s := join(t, st, nil)
	r := waits("writer")
	r.NotifyQueued = true
	wantStatus(t, s, r, store.Granted)
	makeNode(t, st, conn, root+"/key/foreign-"+marks[mutex], zk.FlagSequence)
	kit.Eventually(t, "the warning", func() bool { return strings.Contains(journal.String(), "nodes of a mutex and of a read-write lock") })
}
