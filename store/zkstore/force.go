// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
)

// anyVersion deletes a node whatever was written to it.
const anyVersion = -1

// Force deletes the nodes of all holders. The watch of a holder of this package notifies it. A Java holder
// is not notified, and unlocks without an error. Java's holdings have a token as well: it comes from
// the node. All leases of a holding have one node, so only the holding's first token names it, as
// Inspect shows it. The token of any reader names all that read with it.
func (s *session) Force(ctx context.Context, key string, token int64) (bool, error) {
	return alone(ctx, s, func(context.Context) (bool, error) {
		st := s.store
		lock, err := st.settings.names.lock(key)
		if err != nil {
			return false, err
		}
		if _, err := st.conn.Sync(lock); err != nil {
			return false, st.failure(err, false)
		}
		for range rounds {
			v, err := st.read(lock)
			if err != nil || len(v.nodes) == 0 {
				return false, err
			}
			err = st.forceHolders(key, v, token)
			if err == nil || !errors.Is(err, errChanged) {
				return err == nil, err
			}
		}
		return false, store.ErrUnreachable
	})
}

// errChanged: the holder has changed since it was looked at.
var errChanged = errors.New("zkstore: the holder has changed meanwhile")

// forceHolders deletes the nodes of a view that hold the key, if the token is that of one of them or
// zero. A node's path is its own: it ends in a number that ZooKeeper counts up. So what is deleted is
// what was compared, and the version says that nothing was written to it in between.
func (st *Store) forceHolders(key string, v view, token int64) error {
	if v.isMixed() {
		return errMixed
	}
	meant, version := v.nodes[0], int32(anyVersion)
	if token != 0 {
		var err error
		if meant, version, err = st.holderOf(key, v, token); err != nil {
			return err
		}
	}
	err := st.conn.Delete(v.lock+"/"+meant.name, version)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
		return errChanged
	}
	for _, other := range v.nodes[:v.holders()] {
		if err == nil && other != meant {
			if err = st.conn.Delete(v.lock+"/"+other.name, anyVersion); errors.Is(err, zk.ErrNoNode) {
				err = nil // it has left
			}
		}
	}
	return st.failure(err, true)
}

// holderOf returns the holder with that token, and the version of its node.
func (st *Store) holderOf(key string, v view, token int64) (holder node, version int32, err error) {
	info := v.info(key)
	for _, n := range v.nodes[:v.holders()] {
		data, stat, err := st.conn.Get(v.lock + "/" + n.name)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return n, 0, errChanged
		case err != nil:
			return n, 0, st.failure(err, false)
		}
		found := tokenOf(n.name, stat.Czxid)
		if found == token {
			return n, stat.Version, nil
		}
		v.addHolder(&info, data, found)
	}
	return holder, 0, &store.OtherHolderError{Info: info}
}
