// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// Renew sends one command per request, all at once. It is a script even where the
// server has SET with IFEQ, as Java uses it: that could shorten a TTL.
func (s *session) Renew(ctx context.Context, batch []store.RenewRequest) []store.RenewReply {
	return perform(ctx, s, renewScript, batch,
		func(q *store.RenewRequest) (c call, err error) {
			if err := redisconn.CheckHolding(q.Key, q.Owner, q.Token); err != nil {
				return c, err
			}
			if q.TTL <= 0 {
				return c, fmt.Errorf("%w: TTL must be positive", store.ErrInvalidOption)
			}
			c.keys = s.store.names.keysOf(q.Key)[:2]
			c.args = []string{q.Owner, millis(q.TTL), strconv.FormatInt(q.Token, 10)}
			return c, nil
		},
		s.readRenew,
		func(err error) store.RenewReply { return store.RenewReply{Err: err} },
	)
}

// readRenew reads what renew.lua answers.
func (s *session) readRenew(_ *store.RenewRequest, result rueidis.RedisResult) store.RenewReply {
	r := newReply(result)
	status := r.status()
	switch {
	case r.err != nil:
	case status == replyExpired:
		return store.RenewReply{Err: store.ErrExpired}
	case status == replyStolen:
		return store.RenewReply{Err: store.ErrStolen}
	case status != replyGranted && status != replyForeign:
		r.err = errReply
	}
	if err := r.failed(s.store, status); err != nil {
		return store.RenewReply{Err: err}
	}
	return store.RenewReply{Waiters: unknownWaiters}
}
