// SPDX-License-Identifier: Apache-2.0

package zkstore

import "github.com/go-zookeeper/zk"

// A watch is the server's promise to tell, once, that a node has changed or is
// gone. The client library keeps it over a reconnection, but remembers each
// request for it until it is kept: so one is asked for only where there is none.
type watch struct {
	given bool // or else it is being asked for
}

// observe reads a node, and sees to it that what becomes of the node is told. It
// returns the watch: as long as that is the path's present one, nothing has.
func (st *Store) observe(path string) (data []byte, stat *zk.Stat, w *watch, err error) {
	st.mu.Lock()
	w = st.watches[path]
	if w == nil {
		w = new(watch)
		st.watches[path] = w // before it is asked for: the event may be faster than the answer
	}
	given := w.given
	st.mu.Unlock()
	if given {
		data, stat, err = st.conn.Get(path)
	} else {
		data, stat, _, err = st.conn.GetW(path)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case err == nil:
		w.given = true
	case !w.given && st.watches[path] == w:
		delete(st.watches, path)
	}
	return data, stat, w, err
}

// unwatchedLocked: the promise about a path is kept, or broken with the session.
func (st *Store) unwatchedLocked(path string) {
	delete(st.watches, path)
	if k := st.nodes[path]; k != nil {
		k.watched = false
	}
}

// watchesAny reports whether the server has anything to tell.
func (st *Store) watchesAny() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.watches)+len(st.counted) > 0
}
