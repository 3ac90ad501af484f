// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// Release sends one command per request, all at once. A request that release_fast.lua can't
// do costs a second command, and so may one of a key that is shared. A request that is sent alone
// may have a primer.
func (s *session) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	if len(batch) == 0 {
		return nil
	}
	address := s.requeueAddress(ctx, batch)
	replies := perform(ctx, s, batch, exchange[store.ReleaseRequest, store.ReleaseReply]{
		put: func(c *call, q *store.ReleaseRequest, try int) error {
			return s.putRelease(c, q, s.plan(q, try), address)
		},
		read: func(c *call, q *store.ReleaseRequest, result redisdriver.Result) (answer store.ReleaseReply, again bool) {
			if c.script == releaseFastScript {
				return s.releaseFastReply(q, result)
			}
			return s.releaseReply(q, result, address)
		},
		together: s.store.leaving,
		first:    func(*store.ReleaseRequest) bool { return false }, // release_fast.lua also knows waiters
	})
	for i := range replies {
		if requeued := replies[i].Requeue; requeued != nil && errors.Is(requeued.Err, errAgain) {
			*requeued = s.Acquire(ctx, []store.AcquireRequest{*batch[i].Requeue})[0]
		}
	}
	return replies
}

// requeueAddress returns the address for the requests that queue again, if there are any.
func (s *session) requeueAddress(ctx context.Context, batch []store.ReleaseRequest) string {
	for i := range batch {
		if batch[i].Requeue != nil {
			return s.address(ctx, batch[0].Key) // for the whole batch, which is of one lane
		}
	}
	return noAddress
}

// A releasePlan is how a release is made.
type releasePlan int

const (
	releaseWhole  releasePlan = iota // by release.lua
	releaseWide                      // by release_shares.lua
	releaseFast                      // by release_fast.lua
	releasePrimed                    // by release_fast.lua, with a primer if it is sent by itself
)

// plan decides how a release is made. A release is made again if release_fast.lua could not
// do it, or if the key is shared.
func (s *session) plan(q *store.ReleaseRequest, try int) releasePlan {
	var share store.Share
	if q.Requeue != nil {
		share = q.Requeue.Share
	}
	switch {
	case q.Rest != nil, s.wide(q.Key, share, try):
		return releaseWide
	case try > 0,
		!q.Clean,        // the server may have forgotten something since
		q.HoldBack != 0, // the key is not handed on
		q.Uncertain,     // the owner is remembered
		q.Requeue != nil:
		return releaseWhole
	case s.handoffs.noted(q.Key) && s.store.activity.idle():
		return releasePrimed
	}
	return releaseFast
}

// putRelease writes a release into a call, as planned.
func (s *session) putRelease(c *call, q *store.ReleaseRequest, plan releasePlan, address string) error {
	if err := redisconn.CheckRelease(q, features); err != nil {
		return err
	}
	if plan <= releaseWide {
		s.vacancies.forget(q.Key) // it may leave none
	}
	switch plan {
	case releaseWide:
		return c.releaseShares(s.store.settings.prefix, q, address, s.store.guard(q.Key))
	case releaseWhole:
		return c.release(s.store.settings.prefix, q, address, s.store.guard(q.Key))
	}
	c.releaseFast(s.store.settings.prefix, q, s.store.settings.counterTTL)
	c.withPrimer = plan == releasePrimed
	return nil
}

// releaseFastKinds are the Redis keys of a lock that release_fast.lua needs, in its order.
const releaseFastKinds = "lqwfx"

// releaseFast is a run of release_fast.lua, which describes its keys and arguments.
func (c *call) releaseFast(prefix string, q *store.ReleaseRequest, counterTTL time.Duration) {
	c.script = releaseFastScript
	c.lockKeys(prefix, q.Key, releaseFastKinds)
	c.text(q.Owner)
	c.number(q.Token)
	c.millis(counterTTL)
}

// release is a run of release.lua, which describes its keys and arguments.
func (c *call) release(prefix string, q *store.ReleaseRequest, address string, g guard) error {
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
	c.guard(g)
	return nil
}

// What release_fast.lua answers.
const (
	replyUncommon        = 0 // nothing was changed
	replyHandedToTheLast = 2 // the only waiter has the key
	replyVacant          = 3 // nobody waits, and the vacancy has the last token used
)

// releaseFastReply reads what release_fast.lua answers. again says that the release is for
// release.lua.
func (s *session) releaseFastReply(q *store.ReleaseRequest, result redisdriver.Result) (answer store.ReleaseReply, again bool) {
	held, ok := result.Integer()
	if !ok {
		return s.releaseReply(q, result, noAddress)
	}
	switch held {
	case replyUncommon:
		s.uncommon.note(q.Key, true)
		return store.ReleaseReply{}, true
	case replyWide:
		return s.releaseReply(q, result, noAddress)
	}
	s.handoffs.note(q.Key, held == replyHandedToTheLast)
	if held == replyVacant {
		s.vacancies.note(q.Key)
		if rand.IntN(rivalsForgotten) == 0 {
			s.rivaled.note(q.Key, false)
		}
	}
	s.contended.note(q.Key, held != replyVacant)
	s.uncommon.note(q.Key, false)
	return store.ReleaseReply{WasHeld: held > 0}, false
}

// replyWasHeld is what release.lua answers if the owner held the key. If not, it answers as
// renew.lua does.
const replyWasHeld = 1

// replyNoRest is what release_shares.lua answers to a Rest of something else than what the owner
// has.
const replyNoRest = -5

// releaseReply reads what release.lua and release_shares.lua answer. again says that the key is
// shared, and that the release is for release_shares.lua.
func (s *session) releaseReply(q *store.ReleaseRequest, result redisdriver.Result, address string) (answer store.ReleaseReply, again bool) {
	if held, ok := result.Integer(); ok {
		if held == replyWide {
			s.shared.note(q.Key, true)
			return store.ReleaseReply{Err: errWide}, true
		}
		if q.Requeue == nil && (q.Rest == nil || held != replyWasHeld) {
			return released(held), false
		}
	}
	r := newReply(result)
	switch held := r.number(); {
	case r.err != nil:
	case held == replyForeign:
		answer.Err = foreign(r.text())
	case q.Rest != nil && held == replyWasHeld:
		answer = store.ReleaseReply{WasHeld: true, Grant: store.Grant{Token: r.token(), Fence: r.token()}}
	case q.Requeue == nil:
		r.err = errReply
	default:
		requeued, _ := s.acquireReply(&r, q.Requeue, address)
		answer = released(held)
		answer.Requeue = &requeued
	}
	if err := r.failed(s.store); err != nil {
		return store.ReleaseReply{Err: err}, false
	}
	return answer, false
}

// released says what a release has found.
func released(held int64) store.ReleaseReply {
	switch held {
	case replyWasHeld:
		return store.ReleaseReply{WasHeld: true}
	case replyExpired:
		return store.ReleaseReply{Cause: store.ErrExpired}
	case replyStolen:
		return store.ReleaseReply{Cause: store.ErrStolen}
	case replyNoRest:
		return store.ReleaseReply{Err: errRest}
	}
	return store.ReleaseReply{Err: errReply}
}
