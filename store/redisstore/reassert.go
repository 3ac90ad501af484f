// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"math"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

// reassert requests the holdings once more that were not found or have another owner. A
// server that has forgotten something writes them anew.
func (s *session) reassert(ctx context.Context, batch []store.RenewRequest, replies []store.RenewReply) {
	var missed []int
	for i := range replies {
		if gone := errors.Is(replies[i].Err, store.ErrExpired) || errors.Is(replies[i].Err, store.ErrStolen); gone && s.store.grace(batch[i].Key) > 0 {
			missed = append(missed, i)
		}
	}
	if len(missed) == 0 {
		return
	}
	calls := borrowCalls(len(missed))
	defer returnCalls(calls)
	address := s.inboxName(batch[missed[0]].Key) // for the whole batch, which is of one lane
	for n, i := range missed {
		(*calls)[n].reassert(s.store, &batch[i], address)
	}
	for n, result := range s.store.run(ctx, *calls) {
		i := missed[n]
		if isMoving(result) { // its slot is being moved; the answer of renew.lua holds
			continue
		}
		before := replies[i].Err
		s.reassertReply(&replies[i], result)
		if replies[i].Err == nil {
			s.store.log.Add(slog.LevelWarn, "redisstore: a holding that the server had forgotten was written anew",
				slog.String("key", batch[i].Key), slog.Int64("token", batch[i].Token), slog.Any("was", before))
		}
	}
}

// reassert is a run of reassert.lua, which describes its keys and arguments.
func (c *call) reassert(st *Store, q *store.RenewRequest, address string) {
	c.script = reassertScript
	c.lockKeys(st.settings.prefix, q.Key, lockKinds)
	c.epochKey(st.settings.prefix, q.Key)
	c.text(q.Owner)
	c.text(address)
	c.millis(q.TTL)
	c.number(q.Token)
	c.text(q.Description)
	c.guard(st.guard(q.Key))
}

// reassertReply reads what reassert.lua answers.
func (s *session) reassertReply(reply *store.RenewReply, result rueidis.RedisResult) {
	n, err := result.ToInt64()
	switch {
	case err != nil:
		r := newReply(result)
		if r.number() == replyForeign {
			r.err = foreign(r.text())
		} else if r.err == nil {
			r.err = errReply
		}
		reply.Err = r.failed(s.store)
	case n >= 0 && n <= math.MaxInt32:
		*reply = store.RenewReply{Waiters: int(n)}
	case n == replyExpired:
		reply.Err = store.ErrExpired
	case n == replyStolen:
		reply.Err = store.ErrStolen
	default:
		reply.Err = errReply
	}
}
