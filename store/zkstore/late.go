// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/watchdog"
)

// An orphan is the node that a lock node may have left behind: a request to create it was not
// answered, and may be executed after the lock node is over.
type orphan struct {
	of       *lockNode
	entry    watchdog.Entry
	refusals int // of its deletion
}

// lateLocked searches for late nodes of the lock node after a while.
func (k *lockNode) lateLocked(after time.Duration) {
	o := &orphan{of: k}
	o.entry.Task = o
	k.store.watchdog.Set(&o.entry, watchdog.Now().Add(after))
}

// Fire searches for the node. No other task does so, so Fire may repeat the search until the answer
// is certain.
func (o *orphan) Fire(watchdog.Instant) { o.of.store.task(o.remove) }

// remove deletes the node, if it exists. Its owner may have come back, and may have another node of
// the same name or be about to make one. During the search the owner has to wait.
func (o *orphan) remove() {
	k := o.turn()
	if k == nil {
		return // closed
	}
	defer k.put()
	st := o.of.store
	nodes, err := o.of.find()
	for _, path := range nodes {
		if err == nil && !st.isOwned(path) {
			if err = st.conn.Delete(path, -1); err == zk.ErrNoNode { //nolint:errorlint // the driver's own value
				err = nil
			}
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if k.placeholder {
		delete(st.lockNodes, k.owner)
	}
	if err != nil {
		st.watchdog.Set(&o.entry, watchdog.Now().Add(retryAfter(st.failure(err, true), &o.refusals)))
	}
}

// turn takes the turn of the owner's lock node. If there is no lock node, it makes one for the
// duration. It returns nil if the store is closed.
func (o *orphan) turn() *lockNode {
	st := o.of.store
	for {
		st.mu.Lock()
		k := st.lockNodes[o.of.owner]
		if k == nil {
			k = newLockNode(o.of.session, o.of.owner, target{o.of.lock, o.of.kind})
			k.phase, k.placeholder = leaving, true
			st.lockNodes[k.owner] = k
		}
		st.mu.Unlock()
		if k.take(context.Background()) != nil {
			return nil
		}
		if k.isCurrent() {
			return k
		}
		k.put()
	}
}

// isOwned reports whether a lock node has the node.
func (st *Store) isOwned(path string) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.nodes[path] != nil
}
