// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// Release sends one command per request, all at once, and to one by itself now and then a
// primer. Where release_fast.lua could do
// nothing, another one follows.
func (s *session) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	if len(batch) == 0 {
		return nil
	}
	replies := s.release(ctx, batch)
	var uncommon []int
	for i := range replies {
		if replies[i].Err == errUncommon { //nolint:errorlint // it is never wrapped
			uncommon = append(uncommon, i)
		}
	}
	if uncommon == nil {
		return replies
	}
	again := make([]store.ReleaseRequest, len(uncommon))
	for n, i := range uncommon {
		again[n] = batch[i]
		again[n].Clean = false
	}
	for n, reply := range s.release(ctx, again) {
		replies[uncommon[n]] = reply
	}
	return replies
}

// handedToTheLast is release_fast.lua's reply if it gave the key to the only waiter.
const handedToTheLast = 2

// errUncommon says that a release is for release.lua.
var errUncommon = errors.New("redisstore: not a common release")

func (s *session) release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	address := noAddress
	for i := range batch {
		if batch[i].Requeue != nil {
			address = s.address(ctx, batch[0].Key)
			break
		}
	}
	return perform(ctx, s, batch,
		func(c *call, q *store.ReleaseRequest) error {
			c.withPrimer = common(q) && s.handoffs.last(q.Key) && s.store.activity.idle()
			return c.release(s.store.settings.prefix, q, address, s.store.grace(q.Key))
		},
		func(q *store.ReleaseRequest, result rueidis.RedisResult) store.ReleaseReply {
			return s.releaseReply(q, result, address)
		},
		func(err error) store.ReleaseReply { return store.ReleaseReply{Err: err} },
	)
}

// common reports whether a release may be one for release_fast.lua.
func common(q *store.ReleaseRequest) bool {
	return q.Clean && q.HoldBack == 0 && !q.Uncertain && q.Requeue == nil
}

// releaseFastKinds are the Redis keys of a lock that release_fast.lua needs, in its order.
const releaseFastKinds = "lqwf"

// release is a run of release_fast.lua or release.lua, which describe their keys and
// arguments.
func (c *call) release(prefix string, q *store.ReleaseRequest, address string, grace time.Duration) error {
	if err := redisconn.CheckHolding(q.Key, q.Owner, q.Token); err != nil {
		return err
	}
	if q.HoldBack < 0 || q.Requeue != nil && q.Requeue.Key != q.Key {
		return fmt.Errorf("%w: a negative time to keep, or a requeue for another key", store.ErrBadOption)
	}
	if common(q) {
		c.script = releaseFastScript
		c.lockKeys(prefix, q.Key, releaseFastKinds)
		c.text(q.Owner)
		c.number(q.Token)
		return nil
	}
	c.script = releaseScript
	c.lockKeys(prefix, q.Key, lockKinds)
	c.epochKey(prefix, q.Key)
	c.text(q.Owner)
	c.number(q.Token)
	c.millis(q.HoldBack)
	c.flag(q.Uncertain)
	if q.Requeue != nil {
		if err := c.request(q.Requeue, address); err != nil {
			return err
		}
	}
	c.millis(grace)
	return nil
}

// releaseReply reads what release.lua answers.
func (s *session) releaseReply(q *store.ReleaseRequest, result rueidis.RedisResult, address string) (answer store.ReleaseReply) {
	if m, err := result.ToMessage(); err == nil && m.IsInt64() && q.Requeue == nil {
		held, _ := m.ToInt64()
		answer.WasHeld = held > 0
		switch {
		case !common(q):
		case held == 0:
			answer.Err = errUncommon
		default:
			s.handoffs.note(q.Key, held == handedToTheLast)
		}
		return answer
	}
	r := newReply(result)
	switch held := r.number(); {
	case r.err != nil:
	case held == replyForeign:
		answer.Err = foreign(r.text())
	case q.Requeue == nil:
		r.err = errReply
	default:
		requeued := s.acquireReply(&r, q.Requeue, address)
		answer.WasHeld = held == 1
		answer.Requeue = &requeued
	}
	if err := r.failed(s.store); err != nil {
		return store.ReleaseReply{Err: err}
	}
	return answer
}
