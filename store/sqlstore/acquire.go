// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// unknownWaiters is how many wait for a key of Java's table, as far as the store can
// tell: Java's waiters are nowhere to be counted. One makes a client that passes a
// key on inside give it away after a few times, which zero would not.
const unknownWaiters = 1

// Acquire is one call for the whole batch.
func (s *session) Acquire(ctx context.Context, batch []asynclock.AcquireRequest) []asynclock.AcquireReply {
	return perform(ctx, s, "ACQUIRE", batch, s.putAcquire, s.readAcquire,
		func(err error) asynclock.AcquireReply { return asynclock.AcquireReply{Err: err} },
	)
}

func (s *session) putAcquire(q *asynclock.AcquireRequest) (item, error) {
	it, err := s.store.newOwnerItem(q.Key, q.Owner)
	if err == nil && q.TTL <= 0 {
		err = errTTL
	}
	it.TTL, it.Holder = micros(q.TTL), keyName(q.Holder)
	return it, err
}

func (s *session) readAcquire(q *asynclock.AcquireRequest, a answer) (reply asynclock.AcquireReply, err error) {
	left := time.Duration(a.Left) * time.Microsecond
	switch {
	case a.Status == statusGranted && a.Token > 0:
		reply.Status = asynclock.Granted
		reply.Grant = asynclock.Grant{First: a.Token, SparePerMicrosecond: a.Clocked}
		reply.Waiters = unknownWaiters
	case a.Status == statusHeld && q.Wait:
		reply.Status = asynclock.Waiting
		reply.Remaining = remaining(left)
		reply.Recheck = jitter(s.store.settings.idle)
	case a.Status == statusHeld:
		reply.Status = asynclock.Held
		reply.Remaining = remaining(left)
		reply.Token, reply.Holder = a.Token, a.holder()
	case a.Status == statusGone:
		reply.Status = asynclock.Gone
	default:
		err = errReply
	}
	return reply, err
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
