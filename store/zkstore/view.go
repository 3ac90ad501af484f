// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
)

// A view is the content of a lock.
type view struct {
	lock  string
	nodes []string // in their order; the first holds
	rank  int      // of the lock node that asked
}

// read lists the nodes of a lock, which may not exist.
func (st *Store) read(lock string) (view, error) {
	var children []string
	err := st.health.ask(false, func() (err error) {
		children, _, err = st.conn.Children(lock)
		return err
	})
	if err == zk.ErrNoNode { //nolint:errorlint // the driver's own value
		return view{lock: lock}, nil
	}
	if err != nil {
		return view{lock: lock}, st.failure(err, false)
	}
	nodes, err := inOrder(children)
	return view{lock: lock, nodes: nodes}, err
}

// peek is read for a request that avoids making a node. A server that is behind its leader may show
// a holder that is gone, so a server that shows one is asked again. Even then the leader itself may
// rarely show one for a moment: see Inspect.
func (st *Store) peek(lock string) (view, error) {
	v, err := st.read(lock)
	if err != nil || len(v.nodes) == 0 {
		return v, err
	}
	if _, err := st.conn.Sync(lock); err != nil {
		return v, st.failure(err, false)
	}
	return st.read(lock)
}

// held returns the answer to a request that does not wait. Own is the number of its own nodes.
func (v view) held(st *Store, own int) store.AcquireReply {
	if len(v.nodes) <= own {
		return store.AcquireReply{}
	}
	reply := store.AcquireReply{Status: store.Held, Remaining: -1, Waiters: len(v.nodes) - 1 - own}
	if data, stat, err := st.conn.Get(v.lock + "/" + v.nodes[0]); err == nil {
		reply.Holder, reply.HolderToken = describe(data), firstToken(stat.Czxid)
	}
	return reply
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
	v.rank = slices.IndexFunc(v.nodes, func(name string) bool {
		return len(name) > len(k.prefix) && name[:len(k.prefix)] == k.prefix
	})
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case v.rank < 0:
		k.setNodeLocked("")
		return v, false, nil
	case k.lock+"/"+v.nodes[v.rank] != own: // an earlier creation took effect after all
		k.uncertain = true // there are two nodes, both to be deleted in the end
		k.setNodeLocked(k.lock + "/" + v.nodes[v.rank])
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
