// SPDX-License-Identifier: Apache-2.0

package zkstore

import "github.com/go-zookeeper/zk"

// A watch is the server's promise to report, once, that a node has changed or is gone. The client
// library keeps it over a reconnection, but remembers each request for it until the watch fires.
// The store therefore requests a watch only if there is none.
type watch struct {
	given bool // otherwise it is being requested
}

// observe reads a node and makes sure that its later changes are reported. It returns the watch: as
// long as it is the path's present watch, nothing has been reported.
func (st *Store) observe(path string) (data []byte, stat *zk.Stat, w *watch, err error) {
	st.mu.Lock()
	w = st.watches[path]
	if w == nil {
		w = new(watch)
		st.watches[path] = w // set before the request, because the event may be faster than the answer
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

// unwatchedLocked records that the watch of a path has fired, or has ended with the session.
func (st *Store) unwatchedLocked(path string) {
	delete(st.watches, path)
	if k := st.nodes[path]; k != nil {
		k.watched = false
	}
}

// watchesAny reports whether any watch is set.
func (st *Store) watchesAny() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.watches)+len(st.counted) > 0
}
