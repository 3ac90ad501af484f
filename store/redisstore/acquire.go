// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// lockKinds are the kinds of a lock's Redis keys that the scripts need to grant it, in their
// order. The key of the epoch follows them, and then those of who shares the key, for the scripts
// that are about shares, too. The first two of these are there while somebody shares it.
const (
	lockKinds  = "lqwfx"
	shareKinds = memberKinds + limitKind

	memberKinds = "sh"
	limitKind   = "m"
)

// Acquire sends one command per request, all at once, except for those that are made [together]. A request
// takes a second command if take.lua has refused it, if it finds that the server hides its history, or if it is
// for all of a key that others share.
func (s *session) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	if len(batch) == 0 {
		return nil
	}
	address := s.address(ctx, batch[0].Key) // for the whole batch, which is of one lane
	return perform(ctx, s, batch, exchange[store.AcquireRequest, store.AcquireReply]{
		put: func(c *call, q *store.AcquireRequest, try int) error {
			if s.wide(q.Key, q.Share, try) {
				return c.acquireShares(s.store.settings.prefix, q, address, s.store.guard(q.Key))
			}
			return c.acquire(s.store.settings.prefix, q, address, s.store.guard(q.Key))
		},
		read: func(_ *call, q *store.AcquireRequest, result redisdriver.Result) (answer store.AcquireReply, again bool) {
			r := newReply(result)
			return s.acquireReply(&r, q, address)
		},
		together: s.store.taking,
		address:  address,
		first:    func(q *store.AcquireRequest) bool { return s.vacancies.noted(q.Key) && !s.rivaled.noted(q.Key) },
	})
}

// acquire is a run of acquire.lua, which describes its keys and arguments.
func (c *call) acquire(prefix string, q *store.AcquireRequest, address string, g guard) error {
	c.script = acquireScript
	c.lockKeys(prefix, q.Key, lockKinds)
	c.epochKey(prefix, q.Key)
	if err := c.request(q, address); err != nil {
		return err
	}
	c.guard(g)
	return nil
}

// checkRequest says what is wrong with a request.
func checkRequest(q *store.AcquireRequest) error {
	if err := cmp.Or(redisconn.CheckKey(q.Key), redisconn.CheckAcquire(q, features)); err != nil {
		return err
	}
	switch {
	case q.Wait && (q.GrantTTL <= 0 || q.WaiterTTL <= 0):
		return fmt.Errorf("%w: TTL must be positive", store.ErrInvalidOption)
	case q.Ticket < 0 || q.Ticket > redisconn.MaxToken:
		return fmt.Errorf("%w: ticket %d", store.ErrInvalidOption, q.Ticket)
	}
	return nil
}

// request adds the arguments of a request that acquire.lua describes.
func (c *call) request(q *store.AcquireRequest, address string) error {
	if err := checkRequest(q); err != nil {
		return err
	}
	c.text(q.Owner)
	c.text(address)
	c.millis(q.TTL)
	c.millis(q.GrantTTL)
	c.millis(q.WaiterTTL)
	c.flag(q.Wait)
	c.number(int64(q.QueueLimit))
	c.number(q.Ticket)
	c.text(flags(q))
	c.text(q.Description)
	return nil
}

// flags are what a request asks for, as fragments.go has them.
func flags(q *store.AcquireRequest) string {
	switch share := shareFlags(q); {
	case q.NotifyQueued && q.NotifyRequests:
		return "hw" + share
	case q.NotifyQueued:
		return "h" + share
	case q.NotifyRequests:
		return "w" + share
	case share != "":
		return share
	}
	return "-"
}

// acquireReply reads the answer to a request that named address. again says that nothing has
// happened. Either the server hides its history, and the guard is off from now on, or others share
// the key.
func (s *session) acquireReply(r *reply, q *store.AcquireRequest, address string) (answer store.AcquireReply, again bool) {
	answer = r.acquireReply()
	if err := r.failed(s.store); err != nil {
		return store.AcquireReply{Err: err}, false
	}
	switch {
	case r.hidden:
		s.store.hides(q.Key)
		return answer, true
	case r.wide:
		s.shared.note(q.Key, true)
		return answer, true
	case answer.Status == store.Granted:
		s.shared.note(q.Key, q.Share.Mode != store.Exclusive)
	}
	s.contended.note(q.Key, answer.Status != store.Granted || answer.Waiters > 0)
	if answer.Grace > 0 {
		s.store.graceSeen(answer.Grace)
	}
	if r.opened != "" {
		s.store.graceEnded(r.opened)
	}
	if r.sighting != nil {
		s.store.saw(q.Key, r.sighting)
	}
	if answer.Status == store.Waiting || answer.Status == store.Granted {
		answer.WillNotify = q.NotifyRequests && address != noAddress
	}
	if place, _ := s.inboxOf(bucketOf(q.Key)); address == noAddress && place.Load() != nil {
		place.Load().Prove() // where an answer came from, messages may come from
	}
	if answer.Status == store.Waiting && address == noAddress {
		// In the grace nothing is granted, however often a waiter polls.
		answer.Recheck = answer.Grace + recheck(answer.Rank, q.WaiterTTL)
	}
	return answer, false
}

// recheckAfter is how soon the first in the queue polls again when no message can reach it,
// give or take a third. The pause of those behind it grows with their rank, so that a long
// queue does not poll all the time.
const recheckAfter = 37500 * time.Microsecond

func recheck(rank int, liveness time.Duration) time.Duration {
	d := min(recheckAfter*time.Duration(min(rank, 1000)+1), liveness/3)
	return d*2/3 + rand.N(d*2/3+1)
}
