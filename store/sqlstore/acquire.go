// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// Acquire makes one call for the whole batch, and further calls for the few requests that
// need another answer.
func (s *session) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	address := s.address(ctx)
	replies := s.acquire(ctx, batch, address)
	for i := range replies {
		if q, r := batch[i], &replies[i]; r.Err != nil && q.Ticket > 0 && s.store.conn.IsDuplicate(r.Err) {
			// Another owner has its place, which can happen after tables were restored from a
			// backup. It gets a new place.
			q.Ticket = 0
			*r = s.acquire(ctx, []store.AcquireRequest{q}, address)[0]
		}
	}
	return replies
}

func (s *session) acquire(ctx context.Context, batch []store.AcquireRequest, address string) []store.AcquireReply {
	return sqlconn.Do(ctx, s.Session, sqlconn.Routine[store.AcquireRequest, store.AcquireReply]{
		Name: "ACQUIRE",
		Put: func(q *store.AcquireRequest) (sqlconn.Item, error) {
			it, err := s.AcquireItem(q)
			it.Inbox = address
			return it, err
		},
		Read: func(q *store.AcquireRequest, a sqlconn.Answer) (store.AcquireReply, error) {
			return s.readAcquire(q, a, address)
		},
		Failed: func(err error) store.AcquireReply { return store.AcquireReply{Err: err} },
	}, batch)
}

func (s *session) readAcquire(q *store.AcquireRequest, a sqlconn.Answer, address string) (reply store.AcquireReply, err error) {
	reply.Limit = a.Limit
	if q.Share.Mode == store.Permits && a.Mode == store.Permits && a.Status != sqlconn.StatusGranted {
		reply.Used = a.Used
	}
	switch {
	case !a.IsLimit() || reply.Used < 0:
		err = sqlconn.ErrReply
	case a.Status == sqlconn.StatusGranted && a.IsGrant():
		reply.Status = store.Granted
		reply.Grant = store.Grant{Token: a.Token, TokensFollowClock: a.Clocked, Fence: a.Fence, Weight: a.Weight}
		reply.Waiters = a.Waiters
	case a.Status == sqlconn.StatusWaiting, a.Status == sqlconn.StatusHeld && q.Wait:
		reply.Status = store.Waiting
		reply.Remaining = a.Remaining(q.Share)
		reply.HolderToken, reply.Holder = a.Token, tables{}.Holder(a) // known of who shares the key
		reply.Rank, reply.Ticket, reply.Mark = a.Rank, a.Ticket, a.Mark
		if address == "" { // nobody tells it
			// The key may have been granted to it, for the grant TTL only, and only a poll
			// shows it.
			reply.Recheck = s.NextPoll(q.Owner, a.Rank, q.GrantTTL/3)
		}
	case a.Status == sqlconn.StatusHeld:
		reply.Status = store.Held
		reply.Remaining = a.Remaining(q.Share)
		if a.Left > 0 { // otherwise nobody holds it, and others are ahead in its queue
			reply.HolderToken, reply.Holder = a.Token, tables{}.Holder(a)
		}
		reply.Waiters = a.Waiters
	case a.Status == sqlconn.StatusFull:
		reply.Status, reply.Used = store.Full, 0
	case a.Status == sqlconn.StatusGone:
		reply.Status = store.Withdrawn
	case a.Status == sqlconn.StatusTooMuch && a.Limit > 0:
		reply.Status = store.TooMuch
	default:
		err = sqlconn.ErrReply
	}
	if reply.Status != store.Waiting {
		s.Forget(q.Owner)
	}
	return reply, err
}
