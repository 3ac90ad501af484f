// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"fmt"
	"log/slog"
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
	if reply.Err = s.store.Features().CheckRest(&r); reply.Err != nil {
		return reply
	}
	st := s.store
	if _, reply.Err = st.settings.names.lock(r.Key); reply.Err != nil {
		return reply
	}
	if r.Rest != nil {
		if _, reply.Err = st.settings.kindOf(r.Key, r.Rest.Mode); reply.Err != nil {
			return reply
		}
	}
	st.mu.Lock()
	if r.Uncertain {
		st.withdrawn.Add(r.Owner)
	}
	k := st.lockNodes[r.Owner]
	if k != nil {
		k.releases++
	}
	st.mu.Unlock()
	cause := errNoNode
	if k != nil {
		if cause, reply.Err = k.releaseInTurn(ctx, &r, &reply.Grant); reply.Err != nil {
			return reply
		}
	}
	reply.WasHeld = cause == nil
	if cause != nil {
		reply.Cause = st.whyNotHeld(&r, cause)
	}
	if r.Requeue != nil {
		requeued := s.acquire(ctx, *r.Requeue)
		reply.Requeue = &requeued
	}
	return reply
}

// whyNotHeld returns why the owner did not hold the key. If its holding has ended lately, that is
// why, whatever the release has found since.
func (st *Store) whyNotHeld(r *store.ReleaseRequest, found error) error {
	st.mu.Lock()
	if cause := st.ends.causes[r.Owner]; cause != nil {
		found = cause
	}
	st.mu.Unlock()
	if r.Clean { // its client trusted the holding until now
		st.log.Add(slog.LevelWarn, "zkstore: a release found nothing held", slog.String("key", r.Key), slog.Any("cause", found))
	}
	return found
}

// releaseInTurn is release, when earlier requests of the owner have ended. The grant is that of a rest.
func (k *lockNode) releaseInTurn(ctx context.Context, r *store.ReleaseRequest, grant *store.Grant) (cause, err error) {
	defer func() {
		k.store.mu.Lock()
		defer k.store.mu.Unlock()
		k.releases--
	}()
	if err := k.take(ctx); err != nil {
		return nil, err
	}
	defer k.put()
	if !k.isCurrent() {
		return errNoNode, nil
	}
	if r.Rest != nil {
		*grant, cause, err = k.readOn()
		return cause, err
	}
	return k.release(r.HoldBack)
}

// release ends the lock node. It returns why the lock node did not hold until now, or nil if it
// did.
func (k *lockNode) release(keep time.Duration) (cause, err error) {
	st := k.store
	_, cause, err = k.holdingNodes()
	if err != nil {
		return nil, err
	}
	if cause == nil && keep > 0 {
		st.mu.Lock()
		defer st.mu.Unlock()
		if k.lost || k.over {
			return k.notHeldLocked(), nil // another request has ended it meanwhile
		}
		k.phase = kept
		delete(st.lockNodes, k.owner)
		k.endAtLocked(watchdog.Now().Add(keep))
		return nil, nil
	}
	deleted, err := k.delete()
	if err == nil && cause == nil && !deleted {
		cause = errNodeGone
	}
	return cause, err
}

// holdingNodes returns the nodes of a lock node that holds, the first one first, or why it does not hold. It
// asks the server if necessary.
func (k *lockNode) holdingNodes() (paths []string, cause, err error) {
	paths, cause, sure := k.holds()
	if sure {
		return paths, cause, nil
	}
	if paths, err = k.find(); err != nil {
		return nil, nil, err
	}
	if len(paths) == 0 {
		return nil, errNodeGone, nil
	}
	v, err := k.store.read(k.lock)
	if err != nil {
		return nil, nil, err
	}
	mine := k.ownAmong(v.nodes)
	if len(mine) == 0 {
		return nil, errNodeGone, nil
	}
	if v.rank = mine[0]; !v.holds() {
		return nil, errBehind, nil
	}
	return paths, nil, nil
}

// holds returns the node of a lock node that holds, or why it does not hold, as far as this is known
// without asking the server. A waiting lock node may have been granted the key. An uncertain one may have
// an unknown node.
func (k *lockNode) holds() (paths []string, cause error, sure bool) {
	st := k.store
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case k.uncertain, k.phase == waiting, k.phase == asking:
		return nil, nil, false
	case k.phase != holding || k.ownLocked() == "" || watchdog.Refresh() >= k.until:
		return nil, k.notHeldLocked(), true
	}
	return []string{k.node}, nil, true
}
