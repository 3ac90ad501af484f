// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"math"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// The first element of a script's answer.
const (
	replyForeign = -1 // and then the Redis key that holds something else; nothing was changed
	replyFree    = 0
	replyGranted = 1
	replyHeld    = 3
	replyGone    = 5

	replyExpired = -2
	replyStolen  = -3
)

// A reply reads a list that a script answered. After the last read, err says
// whether all of it was there and of the right type.
type reply struct {
	list []rueidis.RedisMessage
	err  error
}

func newReply(result rueidis.RedisResult) reply {
	list, err := result.ToArray()
	return reply{list: list, err: err}
}

func (r *reply) next(isType func(*rueidis.RedisMessage) bool) (m rueidis.RedisMessage) {
	if r.err == nil && (len(r.list) == 0 || !isType(&r.list[0])) {
		r.err = errReply
	}
	if r.err == nil {
		m, r.list = r.list[0], r.list[1:]
	}
	return m
}

// between reads a number and refuses those outside the bounds.
func (r *reply) between(low, high int64) int64 {
	m := r.next((*rueidis.RedisMessage).IsInt64)
	n, err := m.ToInt64()
	if r.err == nil && (err != nil || n < low || n > high) {
		r.err = errReply
	}
	if r.err != nil {
		return 0
	}
	return n
}

func (r *reply) status() int64 { return r.between(replyStolen, replyGone) }

// left reads what remains of a TTL.
func (r *reply) left() time.Duration { return redisconn.Left(r.between(-2, math.MaxInt64)) }

func (r *reply) text() string {
	m := r.next((*rueidis.RedisMessage).IsString)
	if r.err != nil {
		return ""
	}
	s, _ := m.ToString()
	return s
}

// holder reads who holds a lock: its value's token, description and whether it
// is ours.
func (r *reply) holder() (token int64, description string) {
	ours := r.between(0, 1) == 1
	token, description = r.between(0, redisconn.MaxGiven), r.text()
	if r.err == nil && !ours {
		description = describe(description)
	}
	return token, description
}

// held reads the rest of an answer that the key is held.
func (r *reply) held(info *store.Info) {
	info.Held = true
	info.Remaining = r.left()
	info.Token, info.Holder = r.holder()
}

// failed returns an error of asynclock's if anything went wrong. Call it after the last read.
func (r *reply) failed(st *Store, status int64) error {
	switch {
	case r.err == errReply: //nolint:errorlint // our own, never wrapped
		return errReply
	case r.err != nil:
		return st.conn.Failure(r.err)
	case status == replyForeign:
		if name := r.text(); r.err == nil {
			return foreign(name)
		}
		return errReply
	}
	return nil
}
