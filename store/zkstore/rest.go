// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A writer goes on as a reader by one transaction, which creates a reader's node and deletes the
// writer's. The new node has the number of the old one, as with Curator, and so its place in the queue.
// No writer gets in between, and readers directly behind it hold the key with it.

// readOn makes a holder a reader, unless it is one. It returns why the lock node did not hold, or nil
// if it did.
func (k *lockNode) readOn() (grant store.Grant, cause, err error) {
	st := k.store
	paths, cause, err := k.holdingNodes()
	if cause != nil || err != nil {
		return grant, cause, err
	}
	if cause := k.endsNow(); cause != nil {
		return grant, cause, nil
	}
	path := paths[0]
	if kind, _ := parse(path); kind == writer {
		if path, cause, err = k.becomeReader(paths); cause != nil || err != nil {
			return grant, cause, err
		}
	}
	st.mu.Lock()
	if k.over {
		st.mu.Unlock()
		return grant, errSessionEnded, nil
	}
	if born := k.born; k.node != path {
		k.setNodeLocked(path)
		k.born = born // the session has made both
	}
	k.phase = holding
	st.mu.Unlock()
	switch err := k.learn(path); {
	case err == zk.ErrNoNode: //nolint:errorlint // the driver's own value
		return grant, errNodeDeleted, nil
	case err != nil:
		return grant, nil, st.failure(err, true)
	}
	grant, err = k.grant()
	return grant, nil, err
}

// endsNow returns why a lock node that has the key must not keep it, or nil.
func (k *lockNode) endsNow() error {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	if k.over || k.phase == leaving || watchdog.Refresh() >= k.until {
		return k.notHeldLocked()
	}
	return nil
}

// becomeReader replaces the first of the lock node's nodes by a reader's, and deletes the others. It
// returns the path of the new node, unless that certainly does not exist. If the answer does not come, it is
// uncertain which of them exist.
func (k *lockNode) becomeReader(paths []string) (path string, cause, err error) {
	st := k.store
	data, stat, err := st.conn.Get(paths[0])
	switch {
	case err == zk.ErrNoNode: //nolint:errorlint // the driver's own value
		return "", errNodeDeleted, nil
	case err != nil:
		return "", nil, st.failure(err, false)
	}
	_, number := parse(paths[0])
	st.mu.Lock()
	k.rest = restPrefix(k.owner, stat.Czxid)
	path = k.lock + "/" + k.rest + number
	delete(st.nodes, k.node) // from here on, it is right that the node is gone
	st.mu.Unlock()
	operations := []any{&zk.CreateRequest{Path: path, Data: data, Acl: st.settings.acl, Flags: zk.FlagEphemeral}}
	for _, old := range paths {
		operations = append(operations, &zk.DeleteRequest{Path: old, Version: anyVersion})
	}
	err = st.health.ask(true, func() error {
		_, err := st.conn.Multi(operations...)
		return err
	})
	switch err { //nolint:errorlint // the driver's own values
	case nil, zk.ErrNodeExists, zk.ErrNoNode: // an earlier request was executed after all, or somebody has deleted the writer's node
		return path, nil, nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	k.uncertain = true
	k.setNodeLocked("")
	return "", nil, st.failure(err, true)
}
