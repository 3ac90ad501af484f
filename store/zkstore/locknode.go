// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A lock node is what one owner has in a lock: a node, which holds the key or waits
// for it, or the attempt to make one.
type lockNode struct {
	store   *Store
	session *session // whom to tell

	owner  string
	lock   string // path
	prefix string // of the node's name

	// busy has room for one: who asks the server about this lock node. What the server
	// answers is true only if nobody else has changed it meanwhile.
	busy chan struct{}

	// All below is guarded by store.mu.

	phase phase
	node  string // path; empty: none is known
	born  int64  // in this session of ZooKeeper's
	czxid int64  // zero: not known yet
	// watched: should anything become of the node, the server tells.
	watched bool
	// uncertain: a request to create a node was not answered.
	uncertain bool
	// lost: somebody else has deleted the node.
	lost bool
	// over: nothing is left of the lock node.
	over bool
	// placeholder: it only keeps others from having a lock node for the owner.
	placeholder bool

	until    watchdog.Instant // when it ends, if nobody extends it
	entry    watchdog.Entry
	heard    watchdog.Instant // when its owner's last request came
	grantTTL time.Duration
	refusals int // of the node's deletion

	before string // the node before ours, which is watched

	watch    bool // the owner wants to be told of waiters
	notified bool // and has been
	counting bool // the lock's children are watched
	waiters  int  // as counted last
}

// A phase is what a lock node is.
type phase int

const (
	asking  phase = iota // it has no node, or one whose rank is not known
	waiting              // behind another node
	holding
	kept    // back, after a release: it is nobody's
	leaving // its node is to be deleted
)

// take waits for its turn to ask the server about the lock node.
func (k *lockNode) take(ctx context.Context) error {
	select {
	case k.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-k.store.stopping:
		return store.ErrClosed
	}
}

func (k *lockNode) put() { <-k.busy }

// lockNodeOf returns the owner's lock node, and makes one if it has none. It returns nil
// for an owner that was withdrawn.
func (s *session) lockNodeOf(owner, lock string) *lockNode {
	st := s.store
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.withdrawn.Has(owner) {
		return nil
	}
	k := st.lockNodes[owner]
	if k == nil {
		k = newLockNode(s, owner, lock)
		st.lockNodes[owner] = k
	}
	return k
}

func newLockNode(s *session, owner, lock string) *lockNode {
	k := &lockNode{
		store: s.store, session: s, owner: owner, lock: lock, prefix: nodePrefix(owner),
		busy: make(chan struct{}, 1),
	}
	k.entry.Task = k
	return k
}

// isCurrent reports whether the lock node is its owner's still: it may have ended
// while its turn was waited for.
func (k *lockNode) isCurrent() bool {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	return k.store.lockNodes[k.owner] == k
}

// ownLocked is the lock node's node, unless that is gone, or was of another session.
func (k *lockNode) ownLocked() string {
	if session, _ := k.store.health.now(); k.node == "" || k.lost || k.born != 0 && k.born != session {
		return ""
	}
	return k.node
}

// holdsLocked reports whether the lock node has the key.
func (k *lockNode) holdsLocked() bool { return k.phase == holding && k.ownLocked() != "" }

// setNodeLocked notes which node is the lock node's, or none.
func (k *lockNode) setNodeLocked(path string) {
	if k.store.nodes[k.node] == k {
		delete(k.store.nodes, k.node)
	}
	k.node, k.born, k.czxid, k.watched, k.lost = path, 0, 0, false, false
	if path != "" {
		k.store.nodes[path] = k
		return
	}
	k.unwatchLocked()
	if k.phase != leaving {
		k.phase = asking
	}
}

// unwatchLocked forgets what is watched for the lock node. The server may tell all the
// same.
func (k *lockNode) unwatchLocked() {
	st := k.store
	if k.before != "" {
		rest := st.behind[k.before][:0]
		for _, other := range st.behind[k.before] {
			if other != k {
				rest = append(rest, other)
			}
		}
		if len(rest) == 0 {
			delete(st.behind, k.before)
		} else {
			st.behind[k.before] = rest
		}
		k.before = ""
	}
	k.uncountLocked()
}

// uncountLocked: the lock's children are not watched for the lock node any more.
func (k *lockNode) uncountLocked() {
	if k.store.counted[k.lock] == k {
		delete(k.store.counted, k.lock)
	}
	k.counting = false
}

// endAtLocked sets when the lock node ends.
func (k *lockNode) endAtLocked(at watchdog.Instant) {
	k.until = at
	k.store.watchdog.Set(&k.entry, at)
}

// tell sends an event, unless the client has left.
func (k *lockNode) notify(e store.Event) {
	e.Owner = k.owner
	if !k.session.left.Load() {
		k.session.events(e)
	}
}
