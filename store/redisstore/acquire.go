// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
)

// lockKinds are the Redis keys of a lock that the scripts need to grant it, in
// their order.
const lockKinds = "lqwfx"

// Acquire sends one command per request, all at once.
func (s *session) Acquire(ctx context.Context, batch []asynclock.AcquireRequest) []asynclock.AcquireReply {
	if len(batch) == 0 {
		return nil
	}
	address := s.address(ctx, batch[0].Key) // for all, since they are of one lane
	return perform(ctx, s, acquireScript, batch,
		func(c *call, q *asynclock.AcquireRequest) error {
			if err := checkKey(q.Key); err != nil {
				return err
			}
			c.lockKeys(s.store.settings.prefix, q.Key, lockKinds)
			return c.request(q, address)
		},
		func(q *asynclock.AcquireRequest, result rueidis.RedisResult) asynclock.AcquireReply {
			r := newReply(result)
			return s.acquireReply(&r, q, address)
		},
		func(err error) asynclock.AcquireReply { return asynclock.AcquireReply{Err: err} },
	)
}

// request adds the arguments that acquire.lua describes.
func (c *call) request(q *asynclock.AcquireRequest, address string) error {
	switch {
	case !isField(q.Owner):
		return fmt.Errorf("%w: owner must be printable ASCII without spaces", asynclock.ErrBadOption)
	case q.TTL <= 0 || q.Wait && (q.GrantTTL <= 0 || q.Liveness <= 0):
		return fmt.Errorf("%w: TTL must be positive", asynclock.ErrBadOption)
	case q.Ticket < 0 || q.Ticket > maxToken:
		return fmt.Errorf("%w: ticket %d", asynclock.ErrBadOption, q.Ticket)
	}
	c.text(q.Owner)
	c.text(address)
	c.millis(q.TTL)
	c.millis(q.GrantTTL)
	c.millis(q.Liveness)
	c.flag(q.Wait)
	c.number(int64(q.QueueLimit))
	c.number(q.Ticket)
	if q.WatchContention {
		c.text("h")
	} else {
		c.text("-")
	}
	c.text(q.Holder)
	return nil
}

// acquireReply reads the answer to a request that named address.
func (s *session) acquireReply(r *reply, q *asynclock.AcquireRequest, address string) asynclock.AcquireReply {
	answer := r.acquireReply()
	if err := r.failed(s.store); err != nil {
		return asynclock.AcquireReply{Err: err}
	}
	if answer.Status == asynclock.Waiting && address == noAddress {
		answer.Recheck = recheck(answer.Rank, q.Liveness)
	}
	return answer
}

// recheckAfter is how soon the first in the queue asks again when no message can
// reach it, give or take a third. Those behind it ask in proportion to their
// rank, so that a long queue does not ask all the time.
const recheckAfter = 37500 * time.Microsecond

func recheck(rank int, liveness time.Duration) time.Duration {
	d := min(recheckAfter*time.Duration(min(rank, 1000)+1), liveness/3)
	return d*2/3 + rand.N(d*2/3+1)
}
