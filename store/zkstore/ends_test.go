// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Whatever has ended a holding, the release that comes after says so.
func TestAReleaseSaysWhyItFoundNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*Store, *lockNode)
		want error
	}{
		"the node was deleted":         {func(st *Store, k *lockNode) { st.onDeleted(k.node) }, errNodeDeleted},
		"the session has ended":        {func(st *Store, _ *lockNode) { st.onSession(true) }, errSessionEnded},
		"the session is about to end":  {func(_ *Store, k *lockNode) { k.born++ }, errSessionEnded},
		"the deletion is not read yet": {func(_ *Store, k *lockNode) { k.lost = true }, errNodeDeleted},
		"the TTL has ended":            {func(_ *Store, k *lockNode) { k.until = watchdog.Now() }, errTTLEnded},
		"the TTL has ended and the node is gone": {func(_ *Store, k *lockNode) {
			k.until = watchdog.Now()
			k.leave()
		}, errTTLEnded},
		"the node is gone":                           {func(*Store, *lockNode) {}, errNodeGone},
		"the node is gone, if there was one":         {func(_ *Store, k *lockNode) { k.uncertain = true }, errNodeGone},
		"the owner was never here":                   {func(_ *Store, k *lockNode) { k.forgetLocked() }, errNoNode},
		"the key is held back by an earlier release": {func(_ *Store, k *lockNode) { k.phase = kept }, errReleased},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, k := waiter(t, func(store.Event) {})
			st.mu.Lock()
			k.phase, k.until = holding, watchdog.Now().Add(time.Minute)
			st.mu.Unlock()
			c.end(st, k)
			got := k.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "owner", Clean: true}})[0]
			if got.WasHeld || got.Err != nil || !errors.Is(got.Cause, c.want) || !errors.Is(got.Cause, store.ErrLost) {
				t.Errorf("Release: got %+v, want the cause %v", got, c.want)
			}
		})
	}
}

// A node before the owner's own, which only somebody else's mistake can make.
func TestAReleaseSaysThatAnotherNodeIsFirst(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), zktest.Connect(t, zktest.Servers(t))
	st := open(t, root)
	s := join(t, st, nil)
	acquire(t, s, waits("first"))
	r := waits("owner")
	acquire(t, s, r) // so the lock has had a node with a smaller number
	if got := s.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "first"}})[0]; !got.WasHeld {
		t.Fatalf("Release: got %+v, want WasHeld", got)
	}
	if got := acquire(t, s, r); got.Status != store.Granted {
		t.Fatalf("Acquire: got %+v, want a grant", got)
	}
	if _, err := conn.Create(root+"/key/_c_other-lock-0000000000", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	st.mu.Lock()
	st.lockNodes["owner"].uncertain = true
	st.mu.Unlock()
	got := s.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "owner"}})[0]
	if got.WasHeld || got.Err != nil || !errors.Is(got.Cause, errBehind) || !errors.Is(got.Cause, store.ErrStolen) {
		t.Errorf("Release: got %+v, want the cause %v, as ErrStolen", got, errBehind)
	}
}

// Only so many ends are remembered.
func TestEndingsAreBounded(t *testing.T) {
	t.Parallel()
	var e endings
	for i := range 2 * mostEndings {
		e.add(fmt.Sprint(i), errTTLEnded)
		e.add(fmt.Sprint(i), errNodeDeleted)
	}
	if len(e.causes) != mostEndings || len(e.order) != mostEndings || !errors.Is(e.causes[fmt.Sprint(2*mostEndings-1)], errNodeDeleted) {
		t.Errorf("got %d ends, %d in order, want the last %d", len(e.causes), len(e.order), mostEndings)
	}
}

// A holder that was stopped for longer than its TTL, or than its session may last, reads first that
// its node is gone.
func TestANodeThatGoesAfterItsTimeHasExpired(t *testing.T) {
	t.Parallel()
	const timeout = 10 * time.Second
	for name, c := range map[string]struct {
		ttl, stopped time.Duration
		want         store.Event
	}{
		"in time":             {time.Minute, timeout / 2, store.Event{Kind: store.EventLost, Owner: "owner", Err: store.ErrForced}},
		"after the TTL":       {timeout / 2, timeout / 2, store.Event{Kind: store.EventLost, Owner: "owner", Err: errTTLEnded}},
		"after the session's": {time.Minute, timeout, store.Event{Kind: store.EventLost, Owner: "owner", Err: errSessionMayHaveEnded}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var told []store.Event
				st := &Store{
					watchdog: watchdog.New(), lockNodes: make(map[string]*lockNode), nodes: make(map[string]*lockNode),
					watches: make(map[string]*watch), behind: make(map[string][]*lockNode), counted: make(map[string][]*lockNode),
				}
				defer st.watchdog.Close()
				st.health.connected(&sessionConn{begun: watchdog.Now()}, 1, timeout)
				k := newLockNode(&session{store: st, events: func(e store.Event) { told = append(told, e) }}, "owner", target{"/lock", mutex})
				st.lockNodes["owner"] = k
				k.setNodeLocked("/lock/node")
				k.phase, k.born, k.until = holding, 1, watchdog.Now().Add(c.ttl)
				time.Sleep(c.stopped)
				st.onDeleted("/lock/node")
				if len(told) != 1 || told[0] != c.want {
					t.Errorf("events: got %+v, want %+v", told, c.want)
				}
			})
		})
	}
}
