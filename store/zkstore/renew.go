// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// promise returns the TTL that a request at that moment can promise. If it is short, the store
// writes to a quorum to renew the proof. If it is still short after that, the session is not
// trusted for now.
func (st *Store) promise(born int64, at watchdog.Instant) (time.Duration, error) {
	promise := st.health.promise(born, at)
	_, timeout := st.health.now()
	if promise < timeout/2 {
		if err := st.confirm(); err != nil {
			return 0, err
		}
		promise = st.health.promise(born, at)
	}
	if promise < timeout/5 {
		return 0, fmt.Errorf("%w: ZooKeeper's leader has not heard of the session for long", store.ErrUnreachable)
	}
	return promise, nil
}

// Renew usually asks the server nothing, however many keys there are, because the session's
// heartbeat has renewed them all. A watch notifies the store of changes of each node.
func (s *session) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	start := watchdog.Refresh()
	failed := func(err error) store.RenewReply { return store.RenewReply{Err: err} }
	session, _ := s.store.health.now()
	var promise time.Duration
	if len(batch) > 0 && s.usable(ctx) == nil {
		var err error
		promise, err = alone(ctx, s, func(context.Context) (time.Duration, error) { return s.store.promise(session, start) })
		if err != nil {
			return each(ctx, s, batch, func(context.Context, store.RenewRequest) store.RenewReply { return failed(err) }, failed)
		}
	}
	return each(ctx, s, batch, func(_ context.Context, r store.RenewRequest) store.RenewReply {
		return s.renew(&r, session, start, promise)
	}, failed)
}

func (s *session) renew(r *store.RenewRequest, session int64, start watchdog.Instant, promise time.Duration) store.RenewReply {
	st := s.store
	lock, err := st.settings.names.lock(r.Key)
	if err != nil {
		return store.RenewReply{Err: err}
	}
	k, count, err := s.extendWatched(r, lock, session, start)
	if err != nil {
		return store.RenewReply{Err: st.failure(err, false)}
	}
	if k == nil {
		return store.RenewReply{Err: st.lostTo(lock, r.Share.Mode)}
	}
	if count {
		if err := k.count(); err != nil {
			return store.RenewReply{Err: st.failure(err, false)}
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return store.RenewReply{Waiters: k.waiters, TTL: promise}
}

// extendWatched is extend after it has watched the holder's node. Without the watch, nothing would
// report the node's deletion, and renewals would continue beside the next holder.
func (s *session) extendWatched(r *store.RenewRequest, lock string, session int64, start watchdog.Instant) (k *lockNode, count bool, err error) {
	for range rounds {
		k, unwatched, count := s.extend(r, lock, session, start)
		if unwatched == "" {
			return k, count, nil
		}
		if err := k.learn(unwatched); err != nil && err != zk.ErrNoNode { //nolint:errorlint // the driver's own value; it has ended the holding
			return nil, false, err
		}
	}
	return nil, false, fmt.Errorf("%w: the holder's node is written to all the time", store.ErrUnreachable)
}

// extend moves the end of the owner's holding, if it has one and its node is watched. If the node
// is not watched, extend returns it. Count is true if the holder's waiters must be counted.
func (s *session) extend(r *store.RenewRequest, lock string, session int64, start watchdog.Instant) (k *lockNode, unwatched string, count bool) {
	st := s.store
	st.mu.Lock()
	defer st.mu.Unlock()
	k = st.lockNodes[r.Owner]
	if k == nil || k.lock != lock || k.phase != holding || k.ownLocked() == "" || k.born != session || watchdog.Refresh() >= k.until {
		return nil, "", false
	}
	if !k.watched {
		return k, k.node, false
	}
	k.endAtLocked(max(k.until, start.Add(r.TTL)))
	k.watch = k.watch || r.NotifyQueued
	return k, "", !k.counting
}

// lostTo returns the error for a key that is not the owner's, who had it in that mode: who has it now, if
// anyone.
func (st *Store) lostTo(lock string, mode store.Mode) error {
	if _, err := st.conn.Sync(lock); err != nil {
		return st.failure(err, false)
	}
	v, err := st.read(lock)
	switch {
	case err != nil:
		return err
	case len(v.nodes) == 0 || st.isNobodys(lock+"/"+v.nodes[0].name):
		return store.ErrExpired
	case mode == store.Shared && v.nodes[0].kind == reader:
		return store.ErrExpired // others share it as this owner did
	}
	return store.ErrStolen
}

// isNobodys reports whether a node holds a key back, or is about to be deleted. For other
// processes' nodes this is unknown.
func (st *Store) isNobodys(path string) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	k := st.nodes[path]
	return k != nil && (k.phase == kept || k.phase == leaving)
}
