// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"

	"github.com/asynclock/asynclock-go/store"
)

// turnsPerIdle is how many times shorter than the idle time a client pauses that has
// given a key of Java's table back and wants it again for others of its own: in it, Java has a chance
// to come first. Asked in the same step it would always win.
const turnsPerIdle = 10

// Release is one call for the whole batch.
func (s *session) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	address := ""
	for _, q := range batch {
		if q.Requeue != nil {
			address = s.address(ctx)
			break
		}
	}
	return perform(ctx, s, "RELEASE", batch,
		func(q *store.ReleaseRequest) (item, error) { return s.putRelease(q, address) },
		func(q *store.ReleaseRequest, a answer) (store.ReleaseReply, error) {
			return s.readRelease(q, a, address)
		},
		func(err error) store.ReleaseReply { return store.ReleaseReply{Err: err} },
	)
}

func (s *session) putRelease(q *store.ReleaseRequest, address string) (item, error) {
	it, err := s.store.newOwnerItem(q.Key, q.Owner)
	if err == nil {
		err = checkToken(q.Token)
	}
	switch {
	case err != nil:
		return it, err
	case q.HoldBack < 0, q.Requeue != nil && q.Requeue.Key != q.Key:
		return it, fmt.Errorf("%w: a negative time to keep, or a requeue for another key", store.ErrBadOption)
	}
	s.waiting.remove(q.Owner) // whatever becomes of this, it waits no longer
	it.Token, it.Keep, it.Uncertain = q.Token, micros(q.HoldBack), q.Uncertain
	if q.Requeue != nil {
		requeue, err := s.putAcquire(q.Requeue, address)
		if err != nil {
			return it, err
		}
		it.Requeue = &requeue
	}
	return it, nil
}

func (s *session) readRelease(q *store.ReleaseRequest, a answer, address string) (reply store.ReleaseReply, err error) {
	reply.WasHeld = a.Held
	switch {
	case q.Requeue == nil:
	case s.store.settings.spring != nil:
		reply.Requeue = &store.AcquireReply{
			Status:    store.Waiting,
			Remaining: -1,
			Recheck:   jitter(s.store.settings.idle / turnsPerIdle),
		}
	case a.Requeue == nil:
		return reply, errReply
	default:
		requeue, err := s.readAcquire(q.Requeue, *a.Requeue, address)
		if err != nil {
			return reply, err
		}
		reply.Requeue = &requeue
	}
	return reply, nil
}
