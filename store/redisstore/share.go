// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// The scripts that do the usual work don't know who shares a key. So a key that nobody shares costs
// nothing more. If they meet somebody who does, they change nothing and answer replyWide. The
// request is then sent again, to a script that has more Redis keys: a wide one. A request for a share
// is wide from the beginning. So is one about a key of which a script has said so lately.

// features are what the store offers.
var features = store.Features{
	Name: "redis", Tokens: true, FIFO: true, Retention: true, Shared: true, Permits: true, Limits: true, Notes: true, Announcements: true,
}

// tries is how often a request is sent at most. The first answer may be that the server hides its
// history, and the second one that the key is shared.
const tries = 3

// wide says whether a request for a share is for a wide script. try counts from 0.
func (s *session) wide(key string, share store.Share, try int) bool {
	return share.Mode != store.Exclusive || try == tries-1 || s.shared.noted(key)
}

// errAgain is the answer to a request to queue again, behind more who have died than one step drops. No caller sees it:
// the request is then sent by itself.
var errAgain = fmt.Errorf("%w: redisstore: nothing happened yet", store.ErrUnreachable)

// errWide is the answer to a request that was narrow to the end, which can't happen.
var errWide = fmt.Errorf("%w: redisstore: the key is shared", store.ErrUnreachable)

// shareFlags are the flags of a request for a share, as fragments.go has them.
func shareFlags(q *store.AcquireRequest) string {
	switch q.Share.Mode {
	case store.Shared:
		return "r"
	case store.Permits:
		return fmt.Sprintf("p%d+%d/%d", q.Share.Weight, min(q.Extra, store.MaxPermits), q.Share.Limit)
	}
	return ""
}

// allKeys adds the Redis keys of a lock, in the order of the scripts: with wide, those of who shares
// it, too.
func (c *call) allKeys(prefix, key string, wide bool) {
	c.lockKeys(prefix, key, lockKinds)
	c.epochKey(prefix, key)
	if wide {
		c.lockKeys(prefix, key, shareKinds)
	}
}

// isWide reports whether a script has answered that the key is shared.
func isWide(result redisdriver.Result) bool {
	n, ok := result.Integer()
	return ok && n == replyWide
}

// acquireShares is a run of acquire_shares.lua, which describes its keys and arguments.
func (c *call) acquireShares(prefix string, q *store.AcquireRequest, address string, g guard) error {
	c.script = acquireSharesScript
	c.allKeys(prefix, q.Key, true)
	if err := c.request(q, address); err != nil {
		return err
	}
	c.guard(g)
	return nil
}

// releaseShares is a run of release_shares.lua, which describes its keys and arguments.
func (c *call) releaseShares(prefix string, q *store.ReleaseRequest, address string, g guard) error {
	c.script = releaseSharesScript
	c.allKeys(prefix, q.Key, true)
	c.text(q.Owner)
	c.number(q.Token)
	c.millis(q.HoldBack)
	switch {
	case q.Clean && !q.Uncertain:
		c.text("2")
	default:
		c.flag(q.Uncertain)
	}
	switch {
	case q.Rest == nil:
		c.text("-")
	case q.Rest.Mode == store.Shared:
		c.text("r")
	default:
		c.number(int64(q.Rest.Weight))
	}
	if q.Requeue != nil {
		if err := c.request(q.Requeue, address); err != nil {
			return err
		}
	}
	c.guard(g)
	return nil
}

// errRest is the error for a Rest of something else than what the owner has.
var errRest = fmt.Errorf("%w: the rest is no part of what is held", store.ErrInvalidOption)
