// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"

	"github.com/asynclock/asynclock-go/store"
)

// Renew is one call for the whole batch.
func (s *session) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	return perform(ctx, s, "RENEW", batch, s.putRenew, s.readRenew,
		func(err error) store.RenewReply { return store.RenewReply{Err: err} },
	)
}

func (s *session) putRenew(q *store.RenewRequest) (item, error) {
	it, err := s.store.newOwnerItem(q.Key, q.Owner)
	if err == nil {
		err = checkToken(q.Token)
	}
	if err == nil && q.TTL <= 0 {
		err = errTTL
	}
	it.TTL, it.Token, it.Watch = micros(q.TTL), q.Token, q.NotifyQueued
	if s.inbox != nil && s.inbox.Live() { // it may not have been when the key was granted
		it.Inbox = s.channel
	}
	return it, err
}

func (s *session) readRenew(_ *store.RenewRequest, a answer) (reply store.RenewReply, err error) {
	switch a.Status {
	case statusGranted:
		reply.Waiters = s.store.waiters(a)
	case statusExpired:
		err = store.ErrExpired
	case statusStolen:
		err = store.ErrStolen
	default:
		err = errReply
	}
	return reply, err
}
