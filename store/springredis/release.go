// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// Release sends one command per request, all at once.
func (s *session) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	return perform(ctx, s, releaseScript, batch, s.putRelease, s.readRelease,
		func(err error) store.ReleaseReply { return store.ReleaseReply{Err: err} },
	)
}

// putRelease makes the call that release.lua describes. Whatever becomes of it,
// the owner waits no longer.
func (s *session) putRelease(q *store.ReleaseRequest) (c call, err error) {
	if err := redisconn.CheckRelease(q, features); err != nil {
		return c, err
	}
	if q.Requeue != nil {
		if err := checkAcquire(q.Requeue); err != nil {
			return c, err
		}
	}
	names := s.store.names
	c.keys = names.keysOf(q.Key)
	c.args = []string{
		q.Owner, strconv.FormatInt(q.Token, 10), millis(q.HoldBack), flag(q.Uncertain),
		s.store.deletion.from(), names.channel(c.keys[0]), names.oldChannel,
	}
	s.waiting.remove(c.keys[0], q.Owner)
	return c, nil
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}

// readRelease reads what release.lua answers.
func (s *session) readRelease(q *store.ReleaseRequest, result rueidis.RedisResult) (answer store.ReleaseReply) {
	found, err := s.readDeletion(q.Key, result)
	switch {
	case err != nil:
		return store.ReleaseReply{Err: err}
	case found == replyExpired:
		answer.Cause = store.ErrExpired
	case found == replyStolen:
		answer.Cause = store.ErrStolen
	default:
		answer.WasHeld = true
	}
	if q.Requeue != nil {
		answer.Requeue = s.turn()
	}
	return answer
}

// readDeletion reads what release.lua and force.lua answer. It returns replyGranted, replyExpired or
// replyStolen.
func (s *session) readDeletion(key string, result rueidis.RedisResult) (found int64, err error) {
	r := newReply(result)
	status := r.status()
	switch {
	case r.err != nil:
	case status == replyHeld: // only by force.lua
		info := store.Info{Key: key}
		if r.held(&info); r.err == nil {
			return 0, &store.OtherHolderError{Info: info}
		}
	case status == replyGranted || status == replyExpired || status == replyStolen:
		s.store.deletion.used(r.between(0, int64(len(deletions))), s.store.log)
	case status != replyForeign:
		r.err = errReply
	}
	return status, r.failed(s.store, status)
}
