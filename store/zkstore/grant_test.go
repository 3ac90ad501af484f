// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
	"github.com/asynclock/asynclock-go/watchdog"
)

// The key is taken by force after it was granted and before that is said. The lock may vanish with it.
func TestAGrantThatIsOverIsNotSaid(t *testing.T) {
	for name, vanishes := range map[string]bool{"its node": false, "the whole lock": true} {
		t.Run(name, func(t *testing.T) { testGrantThatIsOver(t, vanishes) })
	}
}

func testGrantThatIsOver(t *testing.T, vanishes bool) {
	t.Parallel()
	w, root, conn := newWire(t), newRoot(), zktest.Connect(t, zktest.Servers(t))
	s := join(t, open(t, root, WithDialer(w.dial)), nil)
	acquire(t, s, waits("first"))
	if got := s.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "first"}})[0]; got.Err != nil {
		t.Fatal(got.Err)
	}
	r := waits("owner")
	r.NotifyQueued = true
	var (
		taken   string
		created int64 // a lock that is made anew counts from 0 again, so a name may come twice
	)
	w.interpose(root+"/key\x01", func() { // its waiters are counted, as the last of what is asked
		taken = children(t, conn, root)[0]
		if _, stat, err := conn.Get(root + "/key/" + taken); err != nil {
			t.Error(err)
		} else {
			created = stat.Czxid
		}
		if err := conn.Delete(root+"/key/"+taken, -1); err != nil {
			t.Error(err)
		}
		if vanishes {
			if err := conn.Delete(root+"/key", -1); err != nil {
				t.Error(err)
			}
		}
	})
	got := acquire(t, s, r)
	names := children(t, conn, root)
	if taken == "" || got.Status != store.Granted || len(names) != 1 {
		t.Fatalf("Acquire: got %+v with nodes %q, want a grant by one node", got, names)
	}
	_, stat, err := conn.Get(root + "/key/" + names[0])
	if err != nil || firstToken(stat.Czxid) != got.Token || stat.Czxid == created {
		t.Errorf("token: got %d, want that of the node, %d (%v), which is not that of %q, %d", got.Token, firstToken(stat.Czxid), err, taken, firstToken(created))
	}
}

// waiter is a lock node that waits, as far as the store knows.
func waiter(t *testing.T, events func(store.Event)) (*Store, *lockNode) {
	t.Helper()
	st := open(t, newRoot())
	k := newLockNode(join(t, st, events).(*session), "owner", target{"/lock", mutex})
	session, _ := st.health.now()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.lockNodes["owner"] = k
	k.setNodeLocked("/lock/node")
	k.phase, k.czxid, k.born, k.grantTTL, k.heard = waiting, 7, session, time.Minute, watchdog.Now()
	return st, k
}

// A waiter whose node is gone, or whose session is over, since it was looked at is
// granted nothing.
func TestOnlyWaitersAreGrantedAnything(t *testing.T) {
	t.Parallel()
	v := view{lock: "/lock", nodes: []node{{name: "node"}}}
	for name, end := range map[string]func(*Store, *lockNode){
		"session": func(st *Store, _ *lockNode) { st.onSession(true) },
		"client": func(_ *Store, k *lockNode) {
			k.session.left.Store(true)
		},
		"node": func(st *Store, _ *lockNode) { st.onDeleted("/lock/node") },
		"time": func(_ *Store, k *lockNode) {
			k.store.mu.Lock()
			defer k.store.mu.Unlock()
			k.forgetLocked()
		},
	} {
		st, k := waiter(t, func(e store.Event) {
			if e.Kind == store.EventGrant {
				t.Errorf("after the end of its %s: got a grant, want none", name)
			}
		})
		end(st, k)
		k.handOver(v)
		if k.holdsLocked() {
			t.Errorf("after the end of its %s: it holds, want that it does not", name)
		}
	}
}

// That the key was taken by force may be told before the grant is, and means nothing
// to its client then. It is told once more.
func TestAForcedGrantIsToldInOrder(t *testing.T) {
	t.Parallel()
	var st *Store
	var told []store.EventKind
	st, k := waiter(t, func(e store.Event) {
		if e.Kind == store.EventGrant {
			st.onDeleted("/lock/node")
		}
		told = append(told, e.Kind)
	})
	k.handOver(view{lock: "/lock", nodes: []node{{name: "node"}}})
	if last := len(told) - 1; last < 1 || told[last] != store.EventLost {
		t.Errorf("events: got %v, want that the last says it was forced", told)
	}
}

// The client counts a grant from its last request that was answered, so an earlier
// one that is answered later does not count.
func TestWaitersAreHeardInOneDirection(t *testing.T) {
	t.Parallel()
	_, k := waiter(t, func(store.Event) {})
	v := view{lock: "/lock", nodes: nodesAmong([]string{"lock-0000000001", "lock-0000000002"}), rank: 1}
	r := waits("owner")
	late, early := watchdog.Now(), watchdog.Now().Add(-time.Second)
	for _, start := range []watchdog.Instant{late, early} {
		if _, ok := k.waits(&r, v, start); !ok {
			t.Fatal("it does not wait, want that it does")
		}
	}
	if k.heard != late || k.until != late.Add(r.WaiterTTL) {
		t.Errorf("heard %v and kept %v before the later request, want 0 and %v after it", late.Sub(k.heard), late.Sub(k.until), r.WaiterTTL)
	}
	k.lost = true
	if _, ok := k.waits(&r, v, late); ok {
		t.Error("without its node it waits, want that it queues again")
	}
}

// A lock node that has ended watches nobody's waiters.
func TestTheDeadCountNobody(t *testing.T) {
	t.Parallel()
	st, k := waiter(t, func(store.Event) {})
	st.mu.Lock()
	k.phase = holding
	st.mu.Unlock()
	if err := k.count(); err == nil || len(st.counted) != 0 { // there is no such lock
		t.Errorf("count: got %v and %d locks counted, want zk's error and none", err, len(st.counted))
	}
	st.mu.Lock()
	k.forgetLocked()
	st.mu.Unlock()
	if err := k.count(); err != nil || len(st.counted) != 0 {
		t.Errorf("count of what has ended: got %v and %d locks counted, want none", err, len(st.counted))
	}
}
