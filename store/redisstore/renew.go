// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// renewalsPerCall is how many holdings one run of a script extends at most. Larger calls would gain nothing and
// block the server for longer.
const renewalsPerCall = 100

// A renewal is how holdings of a kind are renewed: the script, the Redis keys of a lock that it needs,
// in its order, whether that of the epoch follows them, and the arguments.
type renewal struct {
	script *redisconn.Script
	kinds  string
	epoch  bool
	put    func(c *call, q *store.RenewRequest)
}

// Holdings of all of a key, and shares. While a Cluster moves the slot of a holding, its renewal
// has to make do with fewer Redis keys.
var (
	renewWhole       = renewal{renewScript, "lqf", true, (*call).renewWhole}
	renewMovingWhole = renewal{renewScript, "l", false, (*call).renewWhole}
	renewShare       = renewal{renewSharesScript, "l" + memberKinds + "q" + limitKind, true, (*call).renewShare}
	renewMovingShare = renewal{renewSharesScript, "l" + memberKinds, false, (*call).renewShare}
)

// Renew sends one command per 100 requests, all at once: one for holders of all of their keys, and
// another for those who share theirs. Holdings that renew_fast.lua leaves alone are in a further command. It sends
// one more for each holding that the server does not have, in case the server has forgotten it. A Cluster's node
// that was taken for a standalone server refuses keys of several slots in one command. From then on Renew sends
// one command per bucket.
func (s *session) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	r := renewing{session: s, batch: batch, replies: make([]store.RenewReply, len(batch))}
	if err := s.usable(); err != nil {
		for i := range r.replies {
			r.replies[i].Err = err
		}
		return r.replies
	}
	whole, shares := sensible(batch, r.replies)
	whole = r.fast(ctx, whole)
	r.all(ctx, whole, renewWhole, renewMovingWhole)
	for _, i := range whole {
		if errors.Is(r.replies[i].Err, errWide) {
			shares = append(shares, i)
		}
	}
	r.all(ctx, shares, renewShare, renewMovingShare)
	s.reassert(ctx, batch, r.replies)
	return r.replies
}

// A renewing is a batch of renewals and the replies to it.
type renewing struct {
	session *session
	batch   []store.RenewRequest
	replies []store.RenewReply
}

// all sends the requests of these indexes. Those whose slot is being moved are sent again.
func (r *renewing) all(ctx context.Context, indexes []int, how, moved renewal) {
	crossing, moving := r.chunks(ctx, r.session.chunks(r.batch, indexes), how)
	if len(crossing) > 0 {
		r.session.store.slotted.Store(true)
		_, more := r.chunks(ctx, r.session.chunks(r.batch, crossing), how)
		moving = append(moving, more...)
	}
	if len(moving) > 0 {
		r.chunks(ctx, slices.Collect(slices.Chunk(moving, 1)), moved)
	}
}

// chunks sends one command per chunk. It returns the indexes of the requests that the server
// refused: those of several slots (crossing), and those whose slot it is moving.
func (r *renewing) chunks(ctx context.Context, chunks [][]int, how renewal) (crossing, moving []int) {
	st := r.session.store
	calls := borrowCalls(len(chunks))
	defer returnCalls(calls)
	sent := time.Now()
	for i, chunk := range chunks {
		(*calls)[i].renew(st.settings, r.batch, chunk, how)
	}
	for i, result := range st.run(ctx, *calls) {
		r.session.renewReplies(r.replies, chunks[i], result)
		if how.epoch {
			r.told(chunks[i], sent)
		}
		switch {
		case isCrossSlot(result):
			crossing = append(crossing, chunks[i]...)
		case isMoving(result):
			moving = append(moving, chunks[i]...)
		}
	}
	return crossing, moving
}

// told notes of which TTLs a script that was sent at this time has told the epochs.
func (r *renewing) told(chunk []int, sent time.Time) {
	for _, i := range chunk {
		if r.replies[i].Err == nil {
			r.session.store.reaches.tell(&r.batch[i], sent)
		}
	}
}

// sensible returns the indexes of the well-formed requests of batch, for holdings of all of a key
// and for shares. It answers the malformed ones at once.
func sensible(batch []store.RenewRequest, replies []store.RenewReply) (whole, shares []int) {
	whole = make([]int, 0, len(batch))
	for i := range batch {
		q := &batch[i]
		if replies[i].Err = redisconn.CheckHolding(q.Key, q.Owner, q.Token); replies[i].Err != nil {
			continue
		}
		if q.TTL <= 0 {
			replies[i].Err = fmt.Errorf("%w: TTL must be positive", store.ErrInvalidOption)
			continue
		}
		if q.Share.Mode == store.Exclusive {
			whole = append(whole, i)
		} else {
			shares = append(shares, i)
		}
	}
	return whole, shares
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

// renew is a run of renew.lua or renew_shares.lua, which describe their keys and arguments.
func (c *call) renew(of settings, batch []store.RenewRequest, chunk []int, how renewal) {
	c.script = how.script
	for _, i := range chunk {
		c.lockKeys(of.prefix, batch[i].Key, how.kinds)
		if how.epoch {
			c.epochKey(of.prefix, batch[i].Key)
		}
	}
	for _, i := range chunk {
		how.put(c, &batch[i])
	}
	c.guard(guard{of.counterTTL, of.grace})
}

// renewWhole adds the arguments of a holding that renew.lua describes.
func (c *call) renewWhole(q *store.RenewRequest) {
	c.text(q.Owner)
	c.millis(q.TTL)
	c.number(q.Token)
	c.flag(q.NotifyQueued)
}

// renewShare adds the arguments of a holding that renew_shares.lua describes.
func (c *call) renewShare(q *store.RenewRequest) {
	c.text(q.Owner)
	c.millis(q.TTL)
	c.flag(q.NotifyQueued)
	switch q.Share.Mode {
	case store.Shared:
		c.text("=r")
	case store.Permits:
		c.text("=p")
	default:
		c.text("x")
	}
	c.number(int64(max(q.Share.Weight, 0)))
}

// renewReplies reads what renew.lua answers.
func (s *session) renewReplies(replies []store.RenewReply, chunk []int, result redisdriver.Result) {
	r := newReply(result)
	for _, i := range chunk {
		replies[i] = store.RenewReply{}
		switch answer := r.between(replyShared, store.MaxPermits<<32|math.MaxUint32); {
		case answer >= 0:
			replies[i].Waiters, replies[i].Limit = int(uint32(answer)), int32(answer>>32)
		case answer == replyExpired:
			replies[i].Err = store.ErrExpired
		case answer == replyStolen:
			replies[i].Err = store.ErrStolen
		case answer == replyDenied:
			replies[i].Err = store.ErrDenied
		case answer == replyShared:
			replies[i].Err = errWide
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
	replyShared  = -5 // the renewal is for renew_shares.lua
)
