// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/clock"
)

// Release deletes each owner's node. That is the handoff, too: the server tells
// whoever watches it, which is the next.
func (s *session) Release(ctx context.Context, batch []asynclock.ReleaseRequest) []asynclock.ReleaseReply {
	return each(ctx, s, batch, s.release, func(err error) asynclock.ReleaseReply {
		return asynclock.ReleaseReply{Err: err}
	})
}

func (s *session) release(ctx context.Context, r asynclock.ReleaseRequest) (reply asynclock.ReleaseReply) {
	if r.Keep < 0 || r.Owner == "" || r.Requeue != nil && r.Requeue.Key != r.Key {
		reply.Err = fmt.Errorf("%w: no owner, a negative time to keep, or a requeue for another key", asynclock.ErrBadOption)
		return reply
	}
	if _, reply.Err = s.store.settings.names.lock(r.Key); reply.Err != nil {
		return reply
	}
	st := s.store
	st.mu.Lock()
	if r.Uncertain {
		st.gone.add(r.Owner, clock.Now())
	}
	k := st.stakes[r.Owner]
	st.mu.Unlock()
	if k != nil {
		if reply.Err = k.take(ctx); reply.Err != nil {
			return reply
		}
		if k.isCurrent() {
			reply.WasHeld, reply.Err = k.release(r.Keep)
		}
		k.put()
		if reply.Err != nil {
			return reply
		}
	}
	if r.Requeue != nil {
		requeued := s.acquire(ctx, *r.Requeue)
		reply.Requeue = &requeued
	}
	return reply
}

// release ends the stake, and reports whether it held until now.
func (k *stake) release(keep time.Duration) (held bool, err error) {
	st := k.store
	held, sure := k.holds()
	if !sure {
		nodes, err := k.find()
		if err != nil {
			return false, err
		}
		if held = false; len(nodes) > 0 {
			v, err := st.read(k.lock)
			if err != nil {
				return false, err
			}
			held = len(v.nodes) > 0 && k.lock+"/"+v.nodes[0] == nodes[0]
		}
	}
	if held && keep > 0 {
		st.mu.Lock()
		defer st.mu.Unlock()
		k.phase = kept
		delete(st.stakes, k.owner)
		k.endAtLocked(clock.Now().Add(keep))
		return true, nil
	}
	deleted, err := k.delete()
	if err != nil {
		k.leaveAgainIn(retryIn)
	}
	return held && deleted, err
}

// holds reports whether the stake holds, as far as that is known without asking:
// one that waits may have been granted the key, and one that is uncertain may have
// a node that nobody knows of.
func (k *stake) holds() (held, sure bool) {
	st := k.store
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case k.uncertain, k.phase == waiting, k.phase == asking:
		return false, false
	case k.phase != holding || k.ownLocked() == "" || clock.Refresh() >= k.until:
		return false, true
	}
	return true, true
}

// delete removes the stake's node, and whatever else has its name if that is
// uncertain. It reports whether a node was there. After success nothing is left of
// the stake, but that one that was uncertain is looked for once more when the
// session's timeout has passed: a request that was given up can be carried out
// late, though not for longer than the server waits for a silent client.
func (k *stake) delete() (deleted bool, err error) {
	st := k.store
	st.mu.Lock()
	own, uncertain := k.ownLocked(), k.uncertain
	st.mu.Unlock()
	var paths []string
	if uncertain {
		if paths, err = k.find(); err != nil {
			return false, err
		}
	} else if own != "" {
		paths = []string{own}
	}
	for _, path := range paths {
		k.disown(path)
		err := st.pulse.ask(true, func() error { return st.conn.Delete(path, -1) })
		if err != nil && err != zk.ErrNoNode { //nolint:errorlint // the driver's own value
			k.store.mu.Lock()
			k.uncertain = true // it may be there or not
			k.store.mu.Unlock()
			return false, st.failure(err, true)
		}
		deleted = deleted || err == nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	k.forgetLocked()
	if uncertain {
		k.uncertain = false
		_, timeout := st.pulse.now()
		k.lateLocked(timeout)
	}
	return deleted, nil
}

// disown makes sure that the deletion of our own node is not taken for somebody
// else's.
func (k *stake) disown(path string) {
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	if k.store.nodes[path] == k {
		delete(k.store.nodes, path)
	}
}

// lateLocked looks for late nodes of the stake after a while.
func (k *stake) lateLocked(after time.Duration) {
	late := &stake{
		store: k.store, session: k.session, owner: k.owner, lock: k.lock, prefix: k.prefix,
		busy: make(chan struct{}, 1), phase: leaving,
	}
	late.entry.Task = orphan{late}
	late.endAtLocked(clock.Now().Add(after))
}

// isOwned reports whether a stake has the node.
func (st *Store) isOwned(path string) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.nodes[path] != nil
}

// An orphan is a stake that has ended and may have a node all the same.
type orphan struct{ *stake }

// Fire looks for the node. Nobody else does, so it may go on until it knows.
func (o orphan) Fire(clock.Instant) { o.store.task(o.remove) }

func (o orphan) remove() {
	nodes, err := o.find()
	for _, path := range nodes {
		if err == nil && !o.store.isOwned(path) { // its owner may have asked anew
			err = o.store.conn.Delete(path, -1)
		}
	}
	if err != nil && err != zk.ErrNoNode { //nolint:errorlint // the driver's own value
		o.leaveAgainIn(retryIn)
	}
}
