// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Renew is one call for the whole batch.
func (s *session) Renew(ctx context.Context, batch []asynclock.RenewRequest) []asynclock.RenewReply {
	return perform(ctx, s, "RENEW", batch, s.putRenew, s.readRenew,
		func(err error) asynclock.RenewReply { return asynclock.RenewReply{Err: err} },
	)
}

func (s *session) putRenew(q *asynclock.RenewRequest) (item, error) {
	it, err := s.store.newOwnerItem(q.Key, q.Owner)
	if err == nil {
		err = checkToken(q.Token)
	}
	if err == nil && q.TTL <= 0 {
		err = errTTL
	}
	it.TTL, it.Token, it.Watch = micros(q.TTL), q.Token, q.WatchContention
	if s.inbox != nil && s.inbox.Live() { // it may not have been when the key was granted
		it.Inbox = s.channel
	}
	return it, err
}

func (s *session) readRenew(_ *asynclock.RenewRequest, a answer) (reply asynclock.RenewReply, err error) {
	switch a.Status {
	case statusGranted:
		reply.Waiters = s.store.waiters(a)
	case statusExpired:
		err = asynclock.ErrExpired
	case statusStolen:
		err = asynclock.ErrStolen
	default:
		err = errReply
	}
	return reply, err
}
