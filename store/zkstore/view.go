// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
)

// A view is the content of a lock.
type view struct {
	lock  string
	nodes []node // in their order
	rank  int    // of the lock node that asked
}

// isMixed reports whether some nodes are of mutexes, and others of readers or writers.
func (v view) isMixed() bool {
	isMutex := func(n node) bool { return n.kind == mutex }
	mutexes := slices.ContainsFunc(v.nodes, isMutex)
	return mutexes && !allOf(v.nodes, isMutex)
}

func allOf(nodes []node, is func(node) bool) bool {
	return !slices.ContainsFunc(nodes, func(n node) bool { return !is(n) })
}

// holders returns how many nodes hold the key: the readers up to the first writer, or the first node.
func (v view) holders() int {
	n := slices.IndexFunc(v.nodes, func(n node) bool { return n.kind != reader })
	switch n {
	case -1:
		return len(v.nodes)
	case 0:
		return 1
	}
	return n
}

// waiters returns how many nodes wait.
func (v view) waiters() int { return len(v.nodes) - v.holders() }

// ahead returns how many nodes wait before the one that asked, which waits itself.
func (v view) ahead() int { return v.rank - v.holders() }

// holds reports whether the node that asked holds the key.
func (v view) holds() bool { return v.rank < v.holders() }

// with returns the view of a node that comes now.
func (v view) with(as kind) view {
	v.nodes = append(slices.Clip(v.nodes), node{kind: as})
	v.rank = len(v.nodes) - 1
	return v
}

// blocker returns the node for which the one that asked has to wait, and which it watches: the nearest
// writer before a reader, and otherwise the node before it.
func (v view) blocker() node {
	i := v.rank - 1
	for v.nodes[v.rank].kind == reader && v.nodes[i].kind == reader {
		i--
	}
	return v.nodes[i]
}

// children lists what is below a lock, which may not exist.
func (st *Store) children(lock string) (children []string, err error) {
	err = st.health.ask(false, func() (err error) {
		children, _, err = st.conn.Children(lock)
		return err
	})
	if err == zk.ErrNoNode { //nolint:errorlint // the driver's own value
		return nil, nil
	}
	return children, st.failure(err, false)
}

// read lists the nodes of a lock, which may not exist.
func (st *Store) read(lock string) (view, error) {
	children, err := st.children(lock)
	if err != nil {
		return view{lock: lock}, err
	}
	nodes, err := inOrder(children)
	return view{lock: lock, nodes: nodes}, err
}

// peek is read for a request that avoids making a node. A server that is behind its leader may show
// a holder that is gone, so a server that shows one is asked again. Even then the leader itself may
// rarely show one for a moment: see Inspect.
func (st *Store) peek(lock string, as kind) (view, error) {
	v, err := st.read(lock)
	if err != nil || v.with(as).holds() {
		return v, err
	}
	if _, err := st.conn.Sync(lock); err != nil {
		return v, st.failure(err, false)
	}
	return st.read(lock)
}

// held returns the answer to a request that does not wait. Own is the number of its own nodes.
func (v view) held(st *Store, own int) store.AcquireReply {
	reply := store.AcquireReply{Status: store.Held, Remaining: -1, Waiters: v.waiters() - own}
	last := v.nodes[v.holders()-1].name // of several, it has the largest token
	if data, stat, err := st.conn.Get(v.lock + "/" + last); err == nil {
		reply.Holder, reply.HolderToken = v.describe(data), tokenOf(last, stat.Czxid)
	}
	return reply
}

// describe says who holds the key, from the data of the only holder.
func (v view) describe(data []byte) string {
	if n := v.holders(); n > 1 {
		return fmt.Sprintf("%d readers", n)
	}
	return describe(data)
}

// look finds the lock node's rank and the server's data about its node, which it also watches. It
// is not ok if the node is gone, or another one has appeared.
func (k *lockNode) look() (v view, ok bool, err error) {
	st := k.store
	st.mu.Lock()
	own, watched := k.ownLocked(), k.watched
	st.mu.Unlock()
	if own == "" {
		return v, false, nil
	}
	read := make(chan error, 1)
	if watched {
		read <- nil
	} else {
		st.tasks.Go(func() { read <- k.learn(own) }) // ends before look does
	}
	v, err = st.read(k.lock)
	if learned := <-read; err == nil {
		err = learned
	}
	if err == zk.ErrNoNode { //nolint:errorlint // the driver's own value
		err = nil
	}
	if err != nil {
		return v, false, err
	}
	v.rank = -1
	if mine := k.ownAmong(v.nodes); len(mine) > 0 {
		v.rank = mine[0]
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case v.rank < 0:
		k.setNodeLocked("")
		return v, false, nil
	case k.lock+"/"+v.nodes[v.rank].name != own: // an earlier creation took effect after all
		k.uncertain = true // there are two nodes, both to be deleted in the end
		k.setNodeLocked(k.lock + "/" + v.nodes[v.rank].name)
		return v, false, nil
	}
	return v, k.ownLocked() != "" && k.czxid != 0, nil // otherwise it was deleted between the two answers
}

// learn reads the node's creation and watches the node. If the node is gone, learn acts as if the
// watch had fired.
func (k *lockNode) learn(path string) error {
	st := k.store
	data, stat, w, err := st.observe(path)
	if err == zk.ErrNoNode { //nolint:errorlint // the driver's own value
		st.onDeleted(path)
	}
	if err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if k.node == path {
		k.czxid, k.born = stat.Czxid, stat.EphemeralOwner
		k.watched = st.watches[path] == w // otherwise the watch has fired meanwhile
		k.revokedLocked(data)
	}
	return nil
}
