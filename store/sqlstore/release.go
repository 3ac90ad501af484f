// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// Release is one call for the whole batch.
func (s *session) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	address := ""
	for _, q := range batch {
		if q.Requeue != nil {
			address = s.address(ctx)
			break
		}
	}
	return sqlconn.Do(ctx, s.Session, sqlconn.Routine[store.ReleaseRequest, store.ReleaseReply]{
		Name: "RELEASE",
		Put: func(q *store.ReleaseRequest) (sqlconn.Item, error) {
			it, err := s.ReleaseItem(q)
			if it.Requeue != nil {
				it.Requeue.Inbox = address
			}
			return it, err
		},
		Read: func(q *store.ReleaseRequest, a sqlconn.Answer) (store.ReleaseReply, error) {
			return s.readRelease(q, a, address)
		},
		Failed: func(err error) store.ReleaseReply { return store.ReleaseReply{Err: err} },
	}, batch)
}

func (s *session) readRelease(q *store.ReleaseRequest, a sqlconn.Answer, address string) (reply store.ReleaseReply, err error) {
	reply.WasHeld, reply.Cause = a.Held, a.NotHeld()
	if reply.Grant, err = a.Kept(q.Rest); err != nil {
		return reply, err
	}
	switch {
	case q.Requeue == nil:
	case a.Requeue == nil:
		return reply, sqlconn.ErrReply
	default:
		requeue, err := s.readAcquire(q.Requeue, *a.Requeue, address)
		if err != nil {
			return reply, err
		}
		reply.Requeue = &requeue
	}
	return reply, nil
}
