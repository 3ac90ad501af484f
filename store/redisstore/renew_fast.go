// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// fast renews those of the indexes that are usual, by renew_fast.lua, and answers them. It returns the others, which
// are for renew.lua.
func (r *renewing) fast(ctx context.Context, indexes []int) (left []int) {
	st, now := r.session.store, time.Now()
	var quiet, asking []int
	for _, i := range indexes {
		switch q := &r.batch[i]; {
		case st.settings.grace > 0 && !st.reaches.told(q, now):
			left = append(left, i)
		case q.NotifyQueued:
			asking = append(asking, i)
		default:
			quiet = append(quiet, i)
		}
	}
	chunks := r.session.chunks(r.batch, append(quiet, asking...))
	calls := borrowCalls(len(chunks))
	defer returnCalls(calls)
	for n, chunk := range chunks {
		(*calls)[n].renewFast(st.settings.prefix, r.batch, chunk)
	}
	for n, result := range st.run(ctx, *calls) {
		left = append(left, r.readFast(result, chunks[n])...)
	}
	return left
}

// renewFast is a run of renew_fast.lua, which describes its keys and arguments.
func (c *call) renewFast(prefix string, batch []store.RenewRequest, chunk []int) {
	c.script = renewFastScript
	quiet := 0
	for _, i := range chunk {
		c.lockKeys(prefix, batch[i].Key, "l")
		if !batch[i].NotifyQueued {
			quiet++
		}
	}
	for _, i := range chunk {
		c.lockKeys(prefix, batch[i].Key, "q")
	}
	c.number(int64(quiet))
	for _, i := range chunk {
		q := &batch[i]
		c.buffer = strconv.AppendInt(c.buffer, q.Token, 10)
		c.buffer = append(c.buffer, ' ')
		c.buffer = append(c.buffer, q.Owner...)
		c.buffer = append(c.buffer, ' ')
		c.end()
		c.millis(q.TTL)
	}
}

// readFast reads what renew_fast.lua answers, and returns the indexes of the requests that it has left alone. A
// request of a script that the server refuses hears by itself why.
func (r *renewing) readFast(result redisdriver.Result, chunk []int) (left []int) {
	if _, refused := result.Refusal(); refused {
		return chunk
	}
	if n, ok := result.Integer(); ok && n == 0 {
		return nil
	}
	answer := newReply(result)
	for answer.err == nil && answer.More() {
		i := answer.between(1, int64(len(chunk)))
		waiters := answer.between(-1, math.MaxUint32)
		switch {
		case answer.err != nil:
		case waiters < 0:
			left = append(left, chunk[i-1])
		default:
			r.replies[chunk[i-1]].Waiters = int(waiters)
		}
	}
	if err := answer.failed(r.session.store); err != nil {
		for _, i := range chunk {
			r.replies[i] = store.RenewReply{Err: err}
		}
		return nil
	}
	return left
}
