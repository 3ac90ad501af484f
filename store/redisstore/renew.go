// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// renewalsPerCall is how many holdings one run of renew.lua extends at most. A holding takes
// a server some 6 µs, in a call of 64 as in one of 256. Larger calls would gain nothing and
// block the server for longer.
const renewalsPerCall = 100

// renewKinds are the Redis keys of a lock that renew.lua needs, in its order, before the key
// of the epoch. movingKinds are those that it has to make do with while a Cluster moves their
// slot.
const (
	renewKinds  = "lqf"
	movingKinds = "l"
)

// Renew sends one command per 100 requests, all at once. It sends one more for each holding
// that the server does not have, in case the server has forgotten it. A Cluster's node that
// was taken for a standalone server refuses keys of several slots in one command. From then
// on Renew sends one command per bucket.
func (s *session) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	replies := make([]store.RenewReply, len(batch))
	if err := s.usable(); err != nil {
		for i := range replies {
			replies[i].Err = err
		}
		return replies
	}

	crossing, moving := s.renewChunks(ctx, batch, replies, s.chunks(batch, sensible(batch, replies)), renewKinds)
	if len(crossing) > 0 {
		s.store.slotted.Store(true)
		_, more := s.renewChunks(ctx, batch, replies, s.chunks(batch, crossing), renewKinds)
		moving = append(moving, more...)
	}
	if len(moving) > 0 {
		s.renewChunks(ctx, batch, replies, slices.Collect(slices.Chunk(moving, 1)), movingKinds)
	}
	s.reassert(ctx, batch, replies)
	return replies
}

// renewChunks sends one command per chunk. It returns the indexes of the requests that the
// server refused: those of several slots (crossing), and those whose slot it is moving.
func (s *session) renewChunks(ctx context.Context, batch []store.RenewRequest, replies []store.RenewReply, chunks [][]int, kinds string) (crossing, moving []int) {
	calls := borrowCalls(len(chunks))
	defer returnCalls(calls)
	for i, chunk := range chunks {
		(*calls)[i].renew(s.store.settings.prefix, batch, chunk, kinds, guard{s.store.settings.counterTTL, s.store.settings.grace})
	}
	for i, result := range s.store.run(ctx, *calls) {
		s.renewReplies(replies, chunks[i], result)
		switch {
		case isCrossSlot(result):
			crossing = append(crossing, chunks[i]...)
		case isMoving(result):
			moving = append(moving, chunks[i]...)
		}
	}
	return crossing, moving
}

// sensible returns the indexes of the well-formed requests of batch, and answers the
// malformed ones at once.
func sensible(batch []store.RenewRequest, replies []store.RenewReply) []int {
	indexes := make([]int, 0, len(batch))
	for i := range batch {
		q := &batch[i]
		if replies[i].Err = redisconn.CheckHolding(q.Key, q.Owner, q.Token); replies[i].Err != nil {
			continue
		}
		if q.TTL <= 0 {
			replies[i].Err = fmt.Errorf("%w: TTL must be positive", store.ErrInvalidOption)
			continue
		}
		indexes = append(indexes, i)
	}
	return indexes
}

// chunks divides indexes of batch into those of one call each. Where slots matter, a call has
// keys of one bucket only.
func (s *session) chunks(batch []store.RenewRequest, indexes []int) (chunks [][]int) {
	slotted := s.store.conn.Cluster() || s.store.slotted.Load()
	latest := make(map[int]int) // chunk of each bucket, or of all
	for _, i := range indexes {
		bucket := 0
		if slotted {
			bucket = bucketOf(batch[i].Key)
		}
		chunk, ok := latest[bucket]
		if !ok || len(chunks[chunk]) == renewalsPerCall {
			chunk = len(chunks)
			latest[bucket] = chunk
			chunks = append(chunks, nil)
		}
		chunks[chunk] = append(chunks[chunk], i)
	}
	return chunks
}

// renew is a run of renew.lua, which describes its keys and arguments.
func (c *call) renew(prefix string, batch []store.RenewRequest, chunk []int, kinds string, g guard) {
	c.script = renewScript
	for _, i := range chunk {
		c.lockKeys(prefix, batch[i].Key, kinds)
		if kinds == renewKinds {
			c.epochKey(prefix, batch[i].Key)
		}
	}
	for _, i := range chunk {
		q := &batch[i]
		c.text(q.Owner)
		c.millis(q.TTL)
		c.number(q.Token)
		c.flag(q.NotifyQueued)
	}
	c.guard(g)
}

// renewReplies reads what renew.lua answers.
func (s *session) renewReplies(replies []store.RenewReply, chunk []int, result rueidis.RedisResult) {
	r := newReply(result)
	for _, i := range chunk {
		replies[i] = store.RenewReply{}
		switch answer := r.between(replyDenied, math.MaxInt32); {
		case answer >= 0:
			replies[i].Waiters = int(answer)
		case answer == replyExpired:
			replies[i].Err = store.ErrExpired
		case answer == replyStolen:
			replies[i].Err = store.ErrStolen
		case answer == replyDenied:
			replies[i].Err = store.ErrDenied
		default:
			replies[i].Err = store.ErrForeignData
		}
	}
	if err := r.failed(s.store); err != nil {
		for _, i := range chunk {
			replies[i] = store.RenewReply{Err: err}
		}
	}
}

// What renew.lua answers for one holding, besides a number of waiters and
// replyForeign.
const (
	replyExpired = -2
	replyStolen  = -3
	replyDenied  = -4
)
