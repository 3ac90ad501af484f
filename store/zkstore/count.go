// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"log/slog"
	"slices"

	"github.com/asynclock/asynclock-go/store"
)

// count counts the waiters behind a holder, and watches for further ones.
func (k *lockNode) count() error { return k.store.countFor(k.lock, []*lockNode{k}) }

// countFor is count for holders of one lock. Several readers have one watch of the lock's children.
func (st *Store) countFor(lock string, holders []*lockNode) error {
	st.mu.Lock()
	holders = slices.DeleteFunc(holders, func(k *lockNode) bool { return !k.holdsLocked() })
	if len(holders) == 0 {
		st.mu.Unlock()
		return nil // there is nobody to notify
	}
	watched := len(st.counted[lock]) > 0
	for _, k := range holders {
		if !k.counting {
			k.counting = true
			st.counted[lock] = append(st.counted[lock], k)
		}
	}
	st.mu.Unlock()
	children, err := st.watchChildren(lock, watched)
	var nodes []node
	if err == nil {
		nodes, err = inOrder(children)
	}
	st.mu.Lock()
	if err != nil {
		if watched { // by another request, which may have an answer
			for _, k := range holders {
				k.leaveCountLocked()
			}
		} else {
			st.uncountLocked(lock)
		}
		st.mu.Unlock()
		return err
	}
	v := view{lock: lock, nodes: nodes}
	waiters := v.waiters()
	told := st.countedLocked(append(holders, st.counted[lock]...), waiters)
	st.mu.Unlock()
	if v.isMixed() {
		st.log.Add(slog.LevelWarn, "zkstore: a held key has nodes of a mutex and of a read-write lock", slog.String("lock", lock))
	}
	for _, k := range told {
		k.notify(store.Event{Kind: store.EventQueued, Waiters: waiters})
	}
	return nil
}

// watchChildren lists what is below a lock, and watches that unless it is watched.
func (st *Store) watchChildren(lock string, watched bool) (children []string, err error) {
	if watched {
		children, _, err = st.conn.Children(lock)
		return children, err
	}
	children, _, _, err = st.conn.ChildrenW(lock)
	return children, err
}

// countedLocked records how many waiters holders have, and returns those who are to be notified.
func (st *Store) countedLocked(holders []*lockNode, waiters int) (told []*lockNode) {
	for _, k := range holders {
		if k.watch && !k.notified && waiters > 0 {
			told = append(told, k)
		}
		k.waiters, k.notified = waiters, waiters > 0
	}
	return told
}

// uncountLocked records that a lock's children are no longer watched.
func (st *Store) uncountLocked(lock string) {
	for _, k := range st.counted[lock] {
		k.counting = false
	}
	delete(st.counted, lock)
}

// leaveCountLocked records that nothing is counted for the lock node.
func (k *lockNode) leaveCountLocked() {
	st := k.store
	if !k.counting {
		return
	}
	k.counting = false
	st.counted[k.lock] = slices.DeleteFunc(st.counted[k.lock], func(other *lockNode) bool { return other == k })
	if len(st.counted[k.lock]) == 0 {
		delete(st.counted, k.lock)
	}
}

// onChildren handles that nodes have been added to a lock that we hold, or removed. A holder that
// was already notified is not notified again, and counts when it renews.
func (st *Store) onChildren(path string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	var holders []*lockNode
	for _, k := range st.counted[path] {
		if k.phase == holding && k.watch && !k.notified {
			holders = append(holders, k)
		}
	}
	st.uncountLocked(path)
	if len(holders) > 0 {
		st.taskLocked(func() {
			_ = st.countFor(path, holders) // if it fails, the next renewal counts
		})
	}
}
