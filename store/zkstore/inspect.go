// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
)

// queueShown is how many waiters Inspect describes.
const queueShown = 10

// Inspect asks the connected server, after it has caught up with its leader. If the server is the
// leader itself, sync waits for nothing there. Followers may then have seen a write that the leader
// has yet to execute, so that Inspect sometimes shows the state of a moment before. The age of
// waiters is the difference of that server's clock and this machine's.
func (s *session) Inspect(ctx context.Context, key string) (store.Info, error) {
	return alone(ctx, s, func(context.Context) (store.Info, error) {
		lock, err := s.store.settings.names.lock(key)
		if err != nil {
			return store.Info{}, err
		}
		if _, err := s.store.conn.Sync(lock); err != nil {
			return store.Info{}, s.store.failure(err, false)
		}
		return s.store.inspect(key, lock)
	})
}

func (st *Store) inspect(key, lock string) (store.Info, error) {
	for range rounds {
		v, err := st.read(lock)
		if err != nil {
			return store.Info{}, err
		}
		info := store.Info{Key: key, Held: len(v.nodes) > 0, Waiters: max(len(v.nodes)-1, 0)}
		changed := false
		for i, name := range v.nodes[:min(len(v.nodes), queueShown+1)] {
			data, stat, err := st.conn.Get(lock + "/" + name)
			if errors.Is(err, zk.ErrNoNode) {
				changed = true
				break
			}
			if err != nil {
				return store.Info{}, st.failure(err, false)
			}
			if i == 0 {
				info.Holder, info.Token, info.Remaining = describe(data), firstToken(stat.Czxid), -1
				continue
			}
			age := max(time.Since(time.UnixMilli(stat.Ctime)), 0)
			info.Queue = append(info.Queue, store.WaiterInfo{Holder: describe(data), Age: age})
		}
		if !changed {
			return info, nil
		}
	}
	return store.Info{}, store.ErrUnreachable
}

// List walks the tree below the root.
func (s *session) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		root := s.store.settings.names.root
		_, err := alone(ctx, s, func(context.Context) (string, error) {
			path, err := s.store.conn.Sync(root)
			return path, s.store.failure(err, false)
		})
		paths := []string{root}
		for len(paths) > 0 && err == nil {
			path := paths[len(paths)-1]
			paths = paths[:len(paths)-1]
			var found place
			if found, err = alone(ctx, s, func(context.Context) (place, error) { return s.store.visit(path, prefix) }); err != nil {
				break
			}
			if found.matches && !yield(found.info, nil) {
				return
			}
			paths = append(paths, found.below...)
		}
		if err != nil {
			yield(store.Info{}, err)
		}
	}
}

// A place is one node in the tree, with the kind of node that List expects there.
type place struct {
	info    store.Info
	matches bool
	below   []string
}

func (st *Store) visit(path, prefix string) (p place, err error) {
	children, _, err := st.conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return p, nil
	}
	if err != nil {
		return p, st.failure(err, false)
	}
	used := false
	for _, name := range children {
		switch {
		case isNode(name) && !st.settings.names.isAbove(path):
			used = true
		case st.settings.names.mayLead(path+"/"+name, prefix):
			p.below = append(p.below, path+"/"+name)
		}
	}
	key, ok := st.settings.names.key(path)
	if !used || !ok || !strings.HasPrefix(key, prefix) {
		return p, nil
	}
	p.info, err = st.inspect(key, path)
	p.info.Queue = nil
	p.matches = p.info.Held
	if errors.Is(err, store.ErrForeignData) { // not one of our locks
		return place{below: p.below}, nil
	}
	return p, err
}
