// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A lock node is all that one owner has in a lock: a node, which holds the key or waits for it, or
// the attempt to make one.
type lockNode struct {
	store   *Store
	session *session // the client to notify

	owner  string
	lock   string // path
	prefix string // of the node's name

	// busy has room for one: the goroutine that asks the server about this lock node. The server's
	// answer is valid only if no other goroutine has changed the lock node meanwhile.
	busy chan struct{}

	// All below is guarded by store.mu.

	phase phase
	kind  kind   // of the node
	rest  string // prefix of the name of the node with which the owner goes on as a reader; empty: it has not begun to
	node  string // path; empty: none is known
	born  int64  // the ZooKeeper session that made it
	czxid int64  // zero: not known yet
	// watched: the server notifies us of every change of the node.
	watched bool
	// uncertain: a request to create a node was not answered.
	uncertain bool
	// lost: somebody else has deleted the node.
	lost bool
	// over: nothing is left of the lock node.
	over bool
	// placeholder: the lock node exists only to keep others from making one for the owner.
	placeholder bool

	until    watchdog.Instant // when it ends unless extended
	entry    watchdog.Entry
	heard    watchdog.Instant // when its owner's last request came
	grantTTL time.Duration
	refusals int // of the node's deletion
	releases int // of the owner's that wait for their turn, or have it

	before string // the node before ours, which is watched

	watch    bool // the owner asked to be notified of waiters
	notified bool // and was notified
	counting bool // the lock's children are watched
	waiters  int  // the last count
}

// A phase is the state of a lock node.
type phase int

const (
	asking  phase = iota // it has no node, or one whose rank is not known
	waiting              // behind another node
	holding
	kept    // held back after a release, and nobody's
	leaving // its node is to be deleted
)

// take waits for the goroutine's turn to ask the server about the lock node.
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

// lockNodeOf returns the owner's lock node, and makes one if it has none. It returns nil if the
// owner was withdrawn.
func (s *session) lockNodeOf(owner string, in target) *lockNode {
	st := s.store
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.withdrawn.Has(owner) {
		return nil
	}
	k := st.lockNodes[owner]
	if k == nil {
		k = newLockNode(s, owner, in)
		st.lockNodes[owner] = k
	}
	return k
}

// A target is where an owner's node is to be, and of which kind.
type target struct {
	lock string // path
	kind kind
}

func newLockNode(s *session, owner string, in target) *lockNode {
	k := &lockNode{
		store: s.store, session: s, owner: owner, lock: in.lock, prefix: nodePrefix(owner, in.kind), kind: in.kind,
		busy: make(chan struct{}, 1),
	}
	k.entry.Task = k
	return k
}

// ownAmong returns which of the nodes are the lock node's, by their names.
func (k *lockNode) ownAmong(nodes []node) (own []int) {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	for i, n := range nodes {
		if prefix := strings.TrimSuffix(n.name, n.number); prefix == k.prefix || prefix == k.rest {
			own = append(own, i)
		}
	}
	return own
}

// isCurrent reports whether the lock node is still its owner's. It may have ended while the
// goroutine waited for its turn.
func (k *lockNode) isCurrent() bool {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	return k.store.lockNodes[k.owner] == k
}

// ownLocked returns the lock node's node, unless it is gone or belongs to another session.
func (k *lockNode) ownLocked() string {
	if session, _ := k.store.health.now(); k.node == "" || k.lost || k.born != 0 && k.born != session {
		return ""
	}
	return k.node
}

// holdsLocked reports whether the lock node has the key.
func (k *lockNode) holdsLocked() bool { return k.phase == holding && k.ownLocked() != "" }

// hasKey reports whether the lock node has the key.
func (k *lockNode) hasKey() bool {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	return k.holdsLocked()
}

// setNodeLocked records the lock node's node; the empty path means none.
func (k *lockNode) setNodeLocked(path string) {
	if k.store.nodes[k.node] == k {
		delete(k.store.nodes, k.node)
	}
	k.node, k.born, k.czxid, k.watched, k.lost = path, 0, 0, false, false
	if path != "" {
		k.store.nodes[path] = k
		if found, _ := parse(path); found != 0 {
			k.kind = found // which of its nodes is left may have been uncertain
		}
		return
	}
	k.unwatchLocked()
	if k.phase != leaving {
		k.phase = asking
	}
}

// unwatchLocked forgets what the lock node watches. The server may notify us all the same.
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
	k.leaveCountLocked()
}

// endAtLocked sets when the lock node ends.
func (k *lockNode) endAtLocked(at watchdog.Instant) {
	k.until = at
	k.store.watchdog.Set(&k.entry, at)
}

// notify sends an event, unless the client has left.
func (k *lockNode) notify(e store.Event) {
	e.Owner = k.owner
	if !k.session.left.Load() {
		k.session.events(e)
	}
}
