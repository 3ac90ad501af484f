// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"cmp"
	"log/slog"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// onEvent handles the server's notifications. The client library calls it between two packets, so
// it must not wait for anything.
func (st *Store) onEvent(e zk.Event) {
	switch e.Type {
	case zk.EventSession:
		if e.State == zk.StateHasSession || e.State == zk.StateExpired {
			st.onSession(e.State == zk.StateExpired)
		}
	case zk.EventNodeDeleted:
		st.onDeleted(e.Path)
		st.onPassed(e.Path)
	case zk.EventNodeDataChanged:
		st.onChanged(e.Path)
		st.onPassed(e.Path)
	case zk.EventNodeChildrenChanged:
		st.onChildren(e.Path)
	case zk.EventNotWatching: // comes with the end of the session, which was already reported
		st.mu.Lock()
		defer st.mu.Unlock()
		st.unwatchedLocked(e.Path)
	case zk.EventNodeCreated: // nothing waits for it
	}
}

// onSession forgets the nodes of earlier sessions, and notifies their owners. A session that has
// ended has taken its nodes with it, and notifications may have been lost.
func (st *Store) onSession(expired bool) {
	present, _ := st.health.now()
	if expired {
		present = 0
	}
	ended := st.endSessionsBut(present)
	if len(ended.lost)+len(ended.waiting) > 0 {
		st.log.Add(slog.LevelWarn, "zkstore: a session has ended", slog.Int("holdings", len(ended.lost)), slog.Int("waiting", len(ended.waiting)))
	}
	for _, k := range ended.lost {
		k.notify(store.Event{Kind: store.EventLost, Err: errSessionEnded})
	}
	for s := range ended.clients {
		if !s.left.Load() {
			s.events(store.Event{Kind: store.EventResync})
		}
	}
}

// endedNodes are the nodes that have ended with their session.
type endedNodes struct {
	lost, waiting, leaving []*lockNode
	clients                map[*session]bool // of these and all others
}

// endSessionsBut forgets everything that belongs to sessions other than the present one.
func (st *Store) endSessionsBut(present int64) endedNodes {
	st.mu.Lock()
	defer st.mu.Unlock()
	ended := st.collectEndedLocked(present)
	for _, k := range append(ended.leaving, ended.lost...) {
		st.ends.add(k.owner, errSessionEnded)
		k.forgetLocked()
	}
	for _, k := range ended.waiting {
		k.setNodeLocked("")
	}
	for _, k := range st.nodes { // of keys that are held back
		if k.born != 0 && k.born != present {
			k.forgetLocked()
		}
	}
	return ended
}

func (st *Store) collectEndedLocked(present int64) endedNodes {
	ended := endedNodes{clients: make(map[*session]bool)}
	for _, k := range st.lockNodes {
		ended.clients[k.session] = true
		if k.born == 0 || k.born == present {
			continue
		}
		switch k.phase {
		case holding:
			ended.lost = append(ended.lost, k)
		case asking, waiting:
			ended.waiting = append(ended.waiting, k)
		case kept, leaving:
			ended.leaving = append(ended.leaving, k)
		}
	}
	return ended
}

// onDeleted handles that somebody else has deleted one of our nodes.
func (st *Store) onDeleted(path string) {
	st.mu.Lock()
	st.unwatchedLocked(path)
	k := st.nodes[path]
	if k == nil {
		st.mu.Unlock()
		return
	}
	k.lost = true
	phase, ended := k.phase, k.endedBeforeLocked()
	if phase == holding {
		st.ends.add(k.owner, cmp.Or(ended, errNodeDeleted))
	}
	switch {
	case phase != holding && phase != kept:
	case k.uncertain: // it may have another node
		k.phase, k.until = leaving, watchdog.Now()
		st.taskLocked(k.leave)
	default:
		k.forgetLocked()
	}
	st.mu.Unlock()
	switch {
	case phase == holding && ended != nil:
		k.notify(store.Event{Kind: store.EventLost, Err: ended})
	case phase == holding:
		k.notify(store.Event{Kind: store.EventLost, Err: store.ErrForced})
	case phase == waiting:
		k.notify(store.Event{Kind: store.EventWake}) // to queue again
	}
}

// endedBeforeLocked returns why the lock node's time was over by now, or nil. A process that was
// stopped reads late that its node is gone, perhaps before it reads that the session is. Then
// nobody need have taken the key.
func (k *lockNode) endedBeforeLocked() error {
	now := watchdog.Refresh()
	switch {
	case now >= k.until:
		return errTTLEnded
	case k.born != 0 && k.store.health.promise(k.born, now) <= 0:
		return errSessionMayHaveEnded
	}
	return nil
}

// onChanged handles that somebody has written to one of our nodes, which ends its watch. If the
// node can't be watched again now, the next renewal watches it.
func (st *Store) onChanged(path string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.unwatchedLocked(path)
	if k := st.nodes[path]; k != nil {
		st.taskLocked(func() {
			if err := k.learn(path); err != nil {
				st.log.Add(slog.LevelDebug, "zkstore: a node is watched no more", slog.String("lock", k.lock), slog.Any("error", err))
			}
		})
	}
}

// revokeData is the data that Curator's Revoker writes.
const revokeData = "__REVOKE__"

// revokedLocked ends the lease of a holder that was requested to give up. Its node stays until it
// is released or expires.
func (k *lockNode) revokedLocked(data []byte) {
	if k.store.settings.revocation && k.phase == holding && string(data) == revokeData {
		k.store.taskLocked(func() { k.notify(store.Event{Kind: store.EventLost, Err: store.ErrForced}) })
	}
}

// onPassed handles that the node that one of ours waits for is gone, or is no longer watched.
func (st *Store) onPassed(path string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, k := range st.behind[path] {
		k.before = ""
		st.taskLocked(k.promote)
	}
	delete(st.behind, path)
}

// watchBefore watches the node that the lock node's has to wait for, unless it is watched already. It
// is not ok if that node is gone.
func (k *lockNode) watchBefore(v view) (ok bool, err error) {
	st := k.store
	path := v.lock + "/" + v.blocker().name
	st.mu.Lock()
	if k.before == path {
		st.mu.Unlock()
		return true, nil
	}
	k.unwatchLocked()
	k.before = path // set before the request, because the event may be faster than the answer
	st.behind[path] = append(st.behind[path], k)
	st.mu.Unlock()
	_, _, _, err = st.observe(path)
	if err == nil {
		return true, nil
	}
	st.mu.Lock()
	k.unwatchLocked()
	st.mu.Unlock()
	if err == zk.ErrNoNode { //nolint:errorlint // the driver's own value
		err = nil
	}
	return false, err
}

// promote finds out whether a waiter now holds the key. If the server can't be asked, or the nodes have
// no order, the waiter's next heartbeat does so.
func (k *lockNode) promote() {
	select {
	case k.busy <- struct{}{}:
		defer k.put()
	case <-k.store.stopping:
		return
	}
	for range rounds {
		if !k.isWaiting() {
			return
		}
		v, ok, err := k.look()
		if err != nil {
			return
		}
		if !ok {
			k.notify(store.Event{Kind: store.EventWake})
			return
		}
		if v.isMixed() {
			return
		}
		if v.holds() {
			k.handOver(v)
			return
		}
		if ok, err := k.watchBefore(v); ok || err != nil {
			return
		}
	}
}

// isWaiting reports whether the lock node is waiting and its time has not ended.
func (k *lockNode) isWaiting() bool {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	return k.phase == waiting && watchdog.Refresh() < k.until
}

// handOver makes a waiter the holder, for its grant TTL, and notifies it.
func (k *lockNode) handOver(v view) {
	st := k.store
	grant, err := k.grant()
	if err != nil {
		k.notify(store.Event{Kind: store.EventWake}) // the answer to its request says why
		return
	}
	st.mu.Lock()
	// Meanwhile it may have lost its node, its client may have left, or Close may have counted the
	// held keys.
	if k.phase != waiting || k.ownLocked() == "" || k.session.left.Load() || st.ending {
		st.mu.Unlock()
		return
	}
	k.phase = holding
	k.endAtLocked(watchdog.Now().Add(k.grantTTL))
	k.waiters = v.waiters()
	watch, grantTTL := k.watch, k.grantTTL
	// The client counts from its last request, which was no later than heard.
	promise := st.health.promise(k.born, k.heard)
	st.mu.Unlock()
	if promise <= 0 {
		k.notify(store.Event{Kind: store.EventWake})
		return
	}
	k.notify(store.Event{
		Kind: store.EventGrant, Grant: grant, GrantTTL: min(grantTTL, promise), Waiters: v.waiters(),
	})
	st.mu.Lock()
	lost := !k.holdsLocked()
	st.mu.Unlock()
	if lost { // its notification may have come before that of the grant
		k.notify(store.Event{Kind: store.EventLost, Err: store.ErrForced})
		return
	}
	if watch {
		_ = k.count() // if it fails, the next renewal counts
	}
}
