// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// unknownWaiters is the reported number of waiters, because Java's waiters can't be counted.
// With 1, a client that passes a key on inside gives it away after a few times. With 0 it
// would not.
const unknownWaiters = 1

// Pauses between two tries, in units of the poll interval.
const (
	// While messages come through. So long, besides the TTL, it takes to notice that a holder
	// is gone that sends no message.
	ticksWhenTold = 10
	// After a client has had its turn, a tenth of an interval lets others come.
	turnsPerTick = 10
)

// Acquire sends one command per request, all at once. Nobody queues: a waiter polls, when a
// message or Recheck says so.
func (s *session) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	return perform(ctx, s, acquireScript, batch, s.putAcquire, s.readAcquire,
		func(err error) store.AcquireReply { return store.AcquireReply{Err: err} },
	)
}

// putAcquire makes the call that acquire.lua describes, and lets messages find
// the owner from now on.
func (s *session) putAcquire(q *store.AcquireRequest) (c call, err error) {
	if err := checkAcquire(q); err != nil {
		return c, err
	}
	c.keys = s.store.names.keysOf(q.Key)
	c.args = []string{q.Owner, millis(q.TTL), q.Description}
	if q.Wait && s.inbox != nil {
		s.waiting.add(c.keys[0], q.Owner)
	}
	return c, nil
}

func checkAcquire(q *store.AcquireRequest) error {
	if err := redisconn.CheckKey(q.Key); err != nil {
		return err
	}
	return redisconn.CheckAcquire(q, features)
}

// readAcquire reads what acquire.lua answers.
func (s *session) readAcquire(q *store.AcquireRequest, result rueidis.RedisResult) (answer store.AcquireReply) {
	r := newReply(result)
	status := r.status()
	switch {
	case r.err != nil:
	case status == replyGranted:
		answer.Status = store.Granted
		answer.Token = r.between(1, redisconn.MaxGiven)
		answer.TokensFollowClock = r.between(0, 1) == 1
		answer.Waiters = unknownWaiters
	case status == replyHeld && q.Wait:
		answer.Status = store.Waiting
		answer.Remaining = r.left()
		answer.HolderToken, answer.Holder = r.holder()
		answer.Recheck = s.recheck()
	case status == replyHeld:
		answer.Status = store.Held
		answer.Remaining = r.left()
		answer.HolderToken, answer.Holder = r.holder()
	case status == replyGone:
		answer.Status = store.Withdrawn
	case status != replyForeign:
		r.err = errReply
	}
	if err := r.failed(s.store, status); err != nil {
		answer = store.AcquireReply{Err: err}
	}
	// If the outcome is unknown, messages still find the owner, because it will poll again.
	if answer.Err == nil && answer.Status != store.Waiting {
		s.waiting.remove(s.store.names.lock(q.Key), q.Owner)
	}
	return answer
}

// recheck returns how soon a waiter polls again. The core polls as well: once the holder's
// TTL has run out, and by the waiter's heartbeat.
func (s *session) recheck() time.Duration {
	interval := s.store.settings.pollInterval
	if s.live() {
		interval *= ticksWhenTold
	}
	return jitter(interval)
}

// turn answers a client that has given the key back and requests it again for other waiters
// of its own. The client waits without notifications, so that Java has a chance to come
// first. If it requested the key in the same step, as with a queue, it would always win.
func (s *session) turn() *store.AcquireReply {
	return &store.AcquireReply{
		Status:    store.Waiting,
		Remaining: -1,
		Recheck:   jitter(s.store.settings.pollInterval / turnsPerTick),
	}
}
