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

// shownOfEach is how many holders and how many waiters Inspect describes.
const shownOfEach = 10

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
		if err == nil && v.isMixed() {
			err = errMixed
		}
		if err != nil {
			return store.Info{}, err
		}
		info := v.info(key)
		changed := false
		for _, i := range v.shown() {
			data, stat, err := st.conn.Get(lock + "/" + v.nodes[i].name)
			if errors.Is(err, zk.ErrNoNode) {
				changed = true
				break
			}
			if err != nil {
				return store.Info{}, st.failure(err, false)
			}
			if i < v.holders() {
				v.addHolder(&info, data, tokenOf(v.nodes[i].name, stat.Czxid))
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

// shown returns which nodes Inspect describes: the first few of the holders and of the waiters, and the
// last holder, which has the largest token.
func (v view) shown() (shown []int) {
	holders := v.holders()
	for i := range v.nodes {
		if i < shownOfEach || i == holders-1 || i >= holders && i < holders+shownOfEach {
			shown = append(shown, i)
		}
	}
	return shown
}

// info returns what the nodes alone say about the key.
func (v view) info(key string) store.Info {
	info := store.Info{Key: key, Held: len(v.nodes) > 0, Waiters: v.waiters()}
	if info.Held {
		info.Remaining = -1
	}
	if info.Held && v.nodes[0].kind == reader {
		info.Mode = store.Shared
	}
	return info
}

// addHolder adds a holder to what is said about a key.
func (v view) addHolder(info *store.Info, data []byte, token int64) {
	info.Holder, info.Token = v.describe(data), max(info.Token, token)
	if info.Mode == store.Shared && len(info.Holders) < shownOfEach {
		info.Holders = append(info.Holders, store.HolderInfo{Holder: describe(data), Token: token, Remaining: -1})
	}
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
	p.info.Queue, p.info.Holders = nil, nil
	p.matches = p.info.Held
	if errors.Is(err, store.ErrForeignData) { // not one of our locks
		return place{below: p.below}, nil
	}
	return p, err
}
