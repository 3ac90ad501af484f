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

// Force deletes the holder's node. The watch of a holder of this package notifies it. A Java holder
// is not notified, and unlocks without an error. Java's holdings have a token as well: it comes from
// the node. All leases of a holding have one node, so only the holding's first token names it, as
// Inspect shows it.
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
			err = st.forceFirst(key, v, token)
			if err == nil || !errors.Is(err, errChanged) {
				return err == nil, err
			}
		}
		return false, store.ErrUnreachable
	})
}

// errChanged: the holder has changed since it was looked at.
var errChanged = errors.New("zkstore: the holder has changed meanwhile")

// forceFirst deletes the first node of a view, if the token is that node's or zero. A node's path is
// its own: it ends in a number that ZooKeeper counts up. So what is deleted is what was compared, and
// the version says that nothing was written to it in between.
func (st *Store) forceFirst(key string, v view, token int64) error {
	path, version := v.lock+"/"+v.nodes[0], int32(anyVersion)
	if token != 0 {
		data, stat, err := st.conn.Get(path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return errChanged
		case err != nil:
			return st.failure(err, false)
		case firstToken(stat.Czxid) != token:
			return &store.OtherHolderError{Info: store.Info{
				Key: key, Held: true, Holder: describe(data), Token: firstToken(stat.Czxid),
				Remaining: -1, Waiters: len(v.nodes) - 1,
			}}
		}
		version = stat.Version
	}
	err := st.conn.Delete(path, version)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
		return errChanged
	}
	return st.failure(err, true)
}
