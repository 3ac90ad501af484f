// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Release deletes each owner's node. This is also the handoff: the server notifies the client that
// watches the node, which is the next one.
func (s *session) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	return each(ctx, s, batch, s.release, func(err error) store.ReleaseReply {
		return store.ReleaseReply{Err: err}
	})
}

func (s *session) release(ctx context.Context, r store.ReleaseRequest) (reply store.ReleaseReply) {
	if r.HoldBack < 0 || r.Owner == "" || r.Requeue != nil && r.Requeue.Key != r.Key {
		reply.Err = fmt.Errorf("%w: no owner, a negative time to keep, or a requeue for another key", store.ErrInvalidOption)
		return reply
	}
	if _, reply.Err = s.store.settings.names.lock(r.Key); reply.Err != nil {
		return reply
	}
	st := s.store
	st.mu.Lock()
	if r.Uncertain {
		st.withdrawn.Add(r.Owner)
	}
	k := st.lockNodes[r.Owner]
	st.mu.Unlock()
	if k != nil {
		if reply.Err = k.take(ctx); reply.Err != nil {
			return reply
		}
		if k.isCurrent() {
			reply.WasHeld, reply.Err = k.release(r.HoldBack)
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

// release ends the lock node, and reports whether it held until now.
func (k *lockNode) release(keep time.Duration) (held bool, err error) {
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
		if k.lost || k.over {
			return false, nil // another request has ended it meanwhile
		}
		k.phase = kept
		delete(st.lockNodes, k.owner)
		k.endAtLocked(watchdog.Now().Add(keep))
		return true, nil
	}
	deleted, err := k.delete()
	return held && deleted, err
}

// holds reports whether the lock node holds, as far as this is known without asking the server. A
// waiting lock node may have been granted the key. An uncertain one may have an unknown node.
func (k *lockNode) holds() (held, sure bool) {
	st := k.store
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case k.uncertain, k.phase == waiting, k.phase == asking:
		return false, false
	case k.phase != holding || k.ownLocked() == "" || watchdog.Refresh() >= k.until:
		return false, true
	}
	return true, true
}
