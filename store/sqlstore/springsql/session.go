// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"context"
	"errors"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// A session is one client.
type session struct {
	*sqlconn.Session

	store *Store
}

var _ store.SpellingSession = (*session)(nil)

// Close has nothing to wait for.
func (s *session) Close(context.Context) error {
	s.Leave()
	return nil
}

// unknownWaiters is the reported number of waiters, because Java's waiters can't be counted.
// With 1, a client that passes a key on inside gives it away after a few times. With 0 it
// would not.
const unknownWaiters = 1

// errFreed: the key was held when the routine looked first, and free when it looked who
// holds it.
var errFreed = errors.New("springsql: the key has been freed meanwhile")

// freedTries is how often a request is sent whose key is freed each time.
const freedTries = 3

// Acquire is one call for the whole batch, and further ones for the few whose keys were
// freed meanwhile.
func (s *session) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	replies := s.acquire(ctx, batch)
	for i := range replies {
		q, r := batch[i:i+1:i+1], &replies[i]
		for try := 1; errors.Is(r.Err, errFreed) && try < freedTries; try++ {
			*r = s.acquire(ctx, q)[0]
		}
		if errors.Is(r.Err, errFreed) { // there was always somebody
			*r = s.behindSomebody(&q[0])
		}
	}
	return replies
}

// behindSomebody returns the reply to a request whose key is held by an unknown holder.
func (s *session) behindSomebody(q *store.AcquireRequest) store.AcquireReply {
	if q.Wait {
		return store.AcquireReply{Status: store.Waiting, Remaining: -1, Recheck: s.NextPoll(q.Owner, 0, 0)}
	}
	s.Forget(q.Owner)
	return store.AcquireReply{Status: store.Held, Remaining: -1}
}

func (s *session) acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	return sqlconn.Do(ctx, s.Session, sqlconn.Routine[store.AcquireRequest, store.AcquireReply]{
		Name:   "ACQUIRE",
		Put:    s.AcquireItem,
		Read:   s.readAcquire,
		Failed: func(err error) store.AcquireReply { return store.AcquireReply{Err: err} },
	}, batch)
}

func (s *session) readAcquire(q *store.AcquireRequest, a sqlconn.Answer) (reply store.AcquireReply, err error) {
	switch {
	case a.Status == sqlconn.StatusGranted && a.Token > 0:
		reply.Status = store.Granted
		reply.Grant = store.Grant{Token: a.Token, TokensFollowClock: a.Clocked}
		reply.Waiters = unknownWaiters
	case a.Status == sqlconn.StatusHeld && !a.Held:
		return reply, errFreed
	case a.Status == sqlconn.StatusHeld && q.Wait:
		reply.Status = store.Waiting
		reply.Remaining = a.Remaining(q.Share)
		reply.Recheck = s.NextPoll(q.Owner, 0, 0)
	case a.Status == sqlconn.StatusHeld:
		reply.Status = store.Held
		reply.Remaining = a.Remaining(q.Share)
		if a.Left > 0 {
			reply.HolderToken, reply.Holder = a.Token, s.store.conn.Tables.Holder(a)
		}
	case a.Status == sqlconn.StatusGone:
		reply.Status = store.Withdrawn
	default:
		err = sqlconn.ErrReply
	}
	if reply.Status != store.Waiting {
		s.Forget(q.Owner)
	}
	return reply, err
}

// turnsPerPoll divides the poll interval. The result is the pause of a client that has given
// a key back and requests it again for other waiters of its own. In that pause, Java has a
// chance to come first. A request in the same step would always win.
const turnsPerPoll = 10

// Release is one call for the whole batch.
func (s *session) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	return sqlconn.Do(ctx, s.Session, sqlconn.Routine[store.ReleaseRequest, store.ReleaseReply]{
		Name:   "RELEASE",
		Put:    s.ReleaseItem,
		Read:   s.readRelease,
		Failed: func(err error) store.ReleaseReply { return store.ReleaseReply{Err: err} },
	}, batch)
}

func (s *session) readRelease(q *store.ReleaseRequest, a sqlconn.Answer) (store.ReleaseReply, error) {
	reply := store.ReleaseReply{WasHeld: a.Held, Cause: a.NotHeld()}
	if q.Requeue != nil {
		reply.Requeue = &store.AcquireReply{
			Status:    store.Waiting,
			Remaining: -1,
			Recheck:   sqlconn.Jitter(s.store.settings.pollInterval / turnsPerPoll),
		}
	}
	return reply, nil
}

// Renew is one call for the whole batch.
func (s *session) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	return sqlconn.Do(ctx, s.Session, sqlconn.Routine[store.RenewRequest, store.RenewReply]{
		Name: "RENEW",
		Put:  s.RenewItem,
		Read: func(_ *store.RenewRequest, a sqlconn.Answer) (store.RenewReply, error) {
			return store.RenewReply{Waiters: unknownWaiters}, a.Renewed()
		},
		Failed: func(err error) store.RenewReply { return store.RenewReply{Err: err} },
	}, batch)
}
