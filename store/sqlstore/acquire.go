// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// unknownWaiters is how many wait for a key of Java's table, as far as the store can
// tell: Java's waiters are nowhere to be counted. One makes a client that passes a
// key on inside give it away after a few times, which zero would not.
const unknownWaiters = 1

// errFreed: the key was held when the routine looked first, and free when it looked who
// holds it.
var errFreed = errors.New("sqlstore: the key has been freed meanwhile")

// freedTries is how often a request is made that finds a key freed each time.
const freedTries = 3

// Acquire is one call for the whole batch, and further ones for the few that want
// another answer.
func (s *session) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	address := s.address(ctx)
	replies := s.acquire(ctx, batch, address)
	for i := range replies {
		q, r := batch[i:i+1:i+1], &replies[i]
		if r.Err != nil && q[0].Ticket > 0 && s.store.dialect.duplicate(r.Err) {
			// Somebody else has its place, as may be once tables were restored from a backup. It
			// gets another one.
			q = slices.Clone(q)
			q[0].Ticket = 0
			*r = s.acquire(ctx, q, address)[0]
		}
		for try := 1; errors.Is(r.Err, errFreed) && try < freedTries; try++ {
			*r = s.acquire(ctx, q, address)[0]
		}
		if errors.Is(r.Err, errFreed) { // there was always somebody
			*r = s.behindSomebody(&q[0], address)
		}
	}
	return replies
}

// behindSomebody is the reply to who finds a key held, by nobody knows whom.
func (s *session) behindSomebody(q *store.AcquireRequest, address string) store.AcquireReply {
	if q.Wait {
		return store.AcquireReply{Status: store.Waiting, Remaining: -1, Recheck: s.recheck(q, 0, address)}
	}
	s.waiting.remove(q.Owner)
	return store.AcquireReply{Status: store.Held, Remaining: -1}
}

func (s *session) acquire(ctx context.Context, batch []store.AcquireRequest, address string) []store.AcquireReply {
	return perform(ctx, s, "ACQUIRE", batch,
		func(q *store.AcquireRequest) (item, error) { return s.putAcquire(q, address) },
		func(q *store.AcquireRequest, a answer) (store.AcquireReply, error) {
			return s.readAcquire(q, a, address)
		},
		func(err error) store.AcquireReply { return store.AcquireReply{Err: err} },
	)
}

func (s *session) putAcquire(q *store.AcquireRequest, address string) (item, error) {
	it, err := s.store.newOwnerItem(q.Key, q.Owner)
	switch {
	case err != nil:
		return it, err
	case q.TTL <= 0:
		return it, errTTL
	case q.GrantTTL < 0, q.WaiterTTL < 0, q.Ticket < 0:
		return it, fmt.Errorf("%w: a negative grant TTL, liveness or ticket", store.ErrBadOption)
	case q.Wait && (q.GrantTTL == 0 || q.WaiterTTL == 0): // it would be dropped from the queue at once
		return it, fmt.Errorf("%w: a waiter needs a grant TTL and a liveness", store.ErrBadOption)
	}
	it.TTL, it.Grant, it.Alive = micros(q.TTL), micros(q.GrantTTL), micros(q.WaiterTTL)
	it.Wait, it.Limit, it.Ticket = q.Wait, max(q.QueueLimit, 0), q.Ticket
	it.Watch, it.Holder, it.Inbox = q.NotifyQueued, keyName(q.Description), address
	return it, nil
}

func (s *session) readAcquire(q *store.AcquireRequest, a answer, address string) (reply store.AcquireReply, err error) {
	left := time.Duration(a.Left) * time.Microsecond
	switch {
	case a.Status == statusGranted && a.Token > 0:
		reply.Status = store.Granted
		reply.Grant = store.Grant{Token: a.Token, TokensFollowClock: a.Clocked}
		reply.Waiters = s.store.waiters(a)
	case a.Status == statusHeld && s.store.settings.spring != nil && !a.Held:
		return reply, errFreed
	case a.Status == statusWaiting, a.Status == statusHeld && q.Wait:
		reply.Status = store.Waiting
		reply.Remaining = remaining(left)
		reply.Rank, reply.Ticket, reply.Mark = a.Rank, a.Ticket, a.Mark
		reply.Recheck = s.recheck(q, a.Rank, address)
	case a.Status == statusHeld:
		reply.Status = store.Held
		reply.Remaining = remaining(left)
		if left > 0 { // otherwise nobody holds it, and others are ahead in its queue
			reply.HolderToken, reply.Holder = a.Token, a.holder()
		}
		reply.Waiters = a.Waiters
	case a.Status == statusFull:
		reply.Status = store.Full
	case a.Status == statusGone:
		reply.Status = store.Withdrawn
	default:
		err = errReply
	}
	if reply.Status != store.Waiting {
		s.waiting.remove(q.Owner)
	}
	return reply, err
}

// waiters is how many wait for a key, as far as the store can tell.
func (st *Store) waiters(a answer) int {
	if st.settings.spring != nil {
		return unknownWaiters
	}
	return a.Waiters
}

// remaining is never zero: a lock that ends right now is held still, and one that
// has ended while we looked may be, by another.
func remaining(left time.Duration) time.Duration {
	if left <= 0 {
		return -1
	}
	return left
}

// holder describes whoever holds a key. The id of a Java repository is its secret,
// for whoever knows it can release in its name; its first digits are enough to tell
// two of them apart.
func (a answer) holder() string {
	if a.Client != "" {
		return "Spring JdbcLockRegistry " + a.Client + "…"
	}
	text, _ := decodeName(a.Holder)
	return text
}
