// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"math"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// reassert requests the holdings once more that were not found or have another owner. A
// server that has forgotten something writes them anew. Shares are not written anew: those that the
// server has forgotten end.
func (s *session) reassert(ctx context.Context, batch []store.RenewRequest, replies []store.RenewReply) {
	var missed []int
	for i := range replies {
		if gone := errors.Is(replies[i].Err, store.ErrExpired) || errors.Is(replies[i].Err, store.ErrStolen); gone && batch[i].Share.Mode == store.Exclusive && s.store.grace(batch[i].Key) > 0 {
			missed = append(missed, i)
		}
	}
	if len(missed) == 0 {
		return
	}
	s.reassertMissed(ctx, batch, replies, missed, false)
}

// reassertMissed is reassert for the requests of these indexes. Those about keys that others share
// are made again.
func (s *session) reassertMissed(ctx context.Context, batch []store.RenewRequest, replies []store.RenewReply, missed []int, wide bool) {
	var shared []int
	calls := borrowCalls(len(missed))
	defer returnCalls(calls)
	address := s.inboxName(batch[missed[0]].Key) // for the whole batch, which is of one lane
	for n, i := range missed {
		(*calls)[n].reassert(s.store, &batch[i], address, wide)
	}
	for n, result := range s.store.run(ctx, *calls) {
		i := missed[n]
		if isMoving(result) { // its slot is being moved; the answer of renew.lua holds
			continue
		}
		if !wide && isWide(result) {
			shared = append(shared, i)
			continue
		}
		before := replies[i].Err
		s.reassertReply(&replies[i], result)
		if replies[i].Err == nil {
			s.store.log.Add(slog.LevelWarn, "redisstore: a holding that the server had forgotten was written anew",
				slog.String("key", batch[i].Key), slog.Int64("token", batch[i].Token), slog.Any("was", before))
		}
	}
	if len(shared) > 0 {
		s.reassertMissed(ctx, batch, replies, shared, true)
	}
}

// reassert is a run of reassert.lua, which describes its keys and arguments.
func (c *call) reassert(st *Store, q *store.RenewRequest, address string, wide bool) {
	c.script = reassertScript
	c.allKeys(st.settings.prefix, q.Key, wide)
	c.text(q.Owner)
	c.text(address)
	c.millis(q.TTL)
	c.number(q.Token)
	c.text(q.Description)
	c.guard(st.guard(q.Key))
}

// reassertReply reads what reassert.lua answers.
func (s *session) reassertReply(reply *store.RenewReply, result redisdriver.Result) {
	n, ok := result.Integer()
	switch {
	case !ok:
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
