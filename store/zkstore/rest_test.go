// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

// readsOn turns the holder "owner" into a reader.
var readsOn = store.ReleaseRequest{Key: "key", Owner: "owner", Rest: &store.Share{Mode: store.Shared}}

// A writer that goes on as a reader has its place, and the last of its tokens, which all programs see.
func TestAWriterThatReadsOnKeepsItsNumber(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	s, other := join(t, open(t, root, ofAllKeys), nil), join(t, open(t, root, ofAllKeys), nil)
	r := waits("owner")
	r.Description = "somebody"
	was := wantStatus(t, s, r, store.Granted)
	wantStatus(t, s, waits("writer"), store.Waiting)
	got := s.Release(t.Context(), []store.ReleaseRequest{readsOn})[0]
	if got.Err != nil || !got.WasHeld || got.Grant.Fence != was.Token+was.Reserved+1 || got.Grant.Token != got.Grant.Fence {
		t.Fatalf("Release with a Rest: got %+v, want a Fence after the last token of %+v", got, was.Grant)
	}
	nodes := nodesAmong(children(t, conn, root))
	if len(nodes) != 2 || nodes[0].kind != reader || nodes[0].number != "0000000000" || nodes[1].kind != writer {
		t.Fatalf("nodes: got %q, want a reader with the number of the writer, and the other writer", nodeNames(nodes))
	}
	info, err := other.Inspect(t.Context(), "key")
	if err != nil || info.Token != got.Grant.Fence || info.Holder != "somebody" || info.Mode != store.Shared {
		t.Errorf("Inspect by another: got %+v, %v, want the reader with token %d", info, err, got.Grant.Fence)
	}
	end(t, s, "owner")
	if next := wantStatus(t, s, waits("writer"), store.Granted); next.Token <= got.Grant.Fence {
		t.Errorf("token of the next writer: got %d, want more than the reader's %d", next.Token, got.Grant.Fence)
	}
}

// A request that was not answered can be repeated, whether it took effect or not.
func TestAWriterReadsOnOverALostAnswer(t *testing.T) {
	t.Parallel()
	for what, fault := range map[string]func(*wire, string){"answer": (*wire).lose, "request": (*wire).drop} {
		w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
		s := join(t, open(t, root, ofAllKeys, WithDialer(w.dial)), nil)
		wantStatus(t, s, waits("owner"), store.Granted)
		wantStatus(t, join(t, open(t, root, ofAllKeys), nil), waits("writer"), store.Waiting)
		fault(w, marks[reader])
		got := s.Release(t.Context(), []store.ReleaseRequest{readsOn})[0]
		if !errors.Is(got.Err, store.ErrOutcomeUnknown) {
			t.Fatalf("Release whose %s is lost: got %+v, want ErrOutcomeUnknown", what, got)
		}
		// A late request of the writer's is answered by what the owner has.
		kit.Eventually(t, "an answer to a late request", func() bool {
			late := s.Acquire(t.Context(), []store.AcquireRequest{waits("owner")})[0]
			if isReader := slices.Equal(kindsAmong(t, conn, root), []kind{reader, writer}); late.Err == nil && (late.Fence != 0) != isReader {
				t.Errorf("a late Acquire: got %+v, want a Fence only of a reader", late)
			}
			return late.Err == nil
		})
		kit.Eventually(t, "an answer", func() bool {
			got = s.Release(t.Context(), []store.ReleaseRequest{readsOn})[0]
			return got.Err == nil
		})
		if !got.WasHeld || got.Grant.Fence == 0 {
			t.Errorf("Release again: got %+v, want that it goes on as a reader", got)
		}
		if kinds := kindsAmong(t, conn, root); !slices.Equal(kinds, []kind{reader, writer}) {
			t.Errorf("nodes after a lost %s: got kinds %v, want one reader and the writer", what, kinds)
		}
		if again := wantStatus(t, s, reads("owner"), store.Granted); again.Grant != got.Grant {
			t.Errorf("Acquire of the reader: got %+v, want %+v", again.Grant, got.Grant)
		}
		end(t, s, "owner")
		if kinds := kindsAmong(t, conn, root); !slices.Equal(kinds, []kind{writer}) {
			t.Errorf("nodes after the end: got kinds %v, want the writer", kinds)
		}
	}
}

// A request that was not answered and is given up leaves neither node.
func TestAWriterThatMayReadOnLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, fault := range []func(*wire, string){(*wire).lose, (*wire).drop} {
		w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
		s := join(t, open(t, root, ofAllKeys, WithDialer(w.dial)), nil)
		wantStatus(t, s, waits("owner"), store.Granted)
		fault(w, marks[reader])
		s.Release(t.Context(), []store.ReleaseRequest{readsOn})
		kit.Eventually(t, "a new connection", func() bool {
			_, err := s.Inspect(t.Context(), "key")
			return err == nil
		})
		var got store.ReleaseReply
		kit.Eventually(t, "an answer", func() bool {
			got = s.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "owner", Uncertain: true}})[0]
			return got.Err == nil
		})
		if names := children(t, conn, root); !got.WasHeld || len(names) != 0 {
			t.Errorf("Release: got %+v and nodes %q, want that it was held, and none", got, names)
		}
	}
}

// A writer whose node is deleted before it goes on as a reader has lost the key.
func TestAWriterThatIsForcedDoesNotReadOn(t *testing.T) {
	t.Parallel()
	w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
	s := join(t, open(t, root, ofAllKeys, WithDialer(w.dial)), nil)
	wantStatus(t, s, waits("owner"), store.Granted)
	w.interpose(marks[reader], func() {
		if err := conn.Delete(root+"/key/"+children(t, conn, root)[0], -1); err != nil {
			t.Error(err)
		}
	})
	got := s.Release(t.Context(), []store.ReleaseRequest{readsOn})[0]
	if got.Err != nil || got.WasHeld || !errors.Is(got.Cause, store.ErrLost) {
		t.Errorf("Release with a Rest: got %+v, want that it was lost", got)
	}
	if names := children(t, conn, root); len(names) != 0 {
		t.Errorf("nodes: got %q, want none", names)
	}
	if got := s.Renew(t.Context(), []store.RenewRequest{{Key: "key", Owner: "owner", TTL: time.Minute}})[0]; !errors.Is(got.Err, store.ErrExpired) {
		t.Errorf("Renew: got %v, want ErrExpired", got.Err)
	}
}

// A lease of a key without readers goes on when it can't be downgraded.
func TestAPlainKeyIsKeptByARefusedDowngrade(t *testing.T) {
	t.Parallel()
	st := open(t, newRoot(), WithReadWriteKeys(func(key string) bool { return key == "shared" }))
	c := locks(t, st)
	plain := lock(t, c, "key")
	if reader, err := plain.Downgrade(t.Context()); !errors.Is(err, store.ErrUnsupported) || reader != nil {
		t.Errorf("Downgrade: got %v, %v, want ErrUnsupported", reader, err)
	}
	if err := plain.Err(); err != nil {
		t.Errorf("the lease: got %v, want it to go on", err)
	}
	unlock(t, plain)
	reader, err := lock(t, c, "shared").Downgrade(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unlock(t, reader)
}

// The deletion of the writer's node is no loss, and that of the reader's is one.
func TestWhoReadsOnIsWatched(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	c := locks(t, open(t, root, ofAllKeys))
	l, err := lock(t, c, "key").Downgrade(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Renew(t.Context(), time.Minute); err != nil {
		t.Errorf("Renew of the reader: got %v, want no error", err)
	}
	names := children(t, conn, root)
	if len(names) != 1 || !strings.Contains(names[0], marks[reader]) {
		t.Fatalf("nodes: got %q, want one reader", names)
	}
	if err := conn.Delete(root+"/key/"+names[0], -1); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, l)
}
