// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"context"
	"iter"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Shorter names for what faults replace.
type (
	session        = brokenSession
	acquireRequest = store.AcquireRequest
	acquireReply   = store.AcquireReply
	renewRequest   = store.RenewRequest
	renewReply     = store.RenewReply
	releaseRequest = store.ReleaseRequest
	releaseReply   = store.ReleaseReply
	event          = store.Event
)

// silent is no fault but a store without messages, which says so.
var silent = fault{
	acquire: replied(recheck),
	release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		if reply.Requeue != nil {
			recheck(reply.Requeue)
		}
		return reply
	},
	event: func(e event) (event, bool) { return e, false },
}

func recheck(r *acquireReply) {
	if r.Status == store.Waiting {
		r.Recheck = 50 * time.Millisecond
	}
}

// request changes what is asked.
func request(change func(*acquireRequest)) func(*session, acquireRequest) acquireReply {
	return func(c *session, r acquireRequest) acquireReply {
		change(&r)
		return c.acquire(r)
	}
}

// replied changes what is answered.
func replied(change func(*acquireReply)) func(*session, acquireRequest) acquireReply {
	return func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		change(&reply)
		return reply
	}
}

// renamed changes the key of an acquisition.
func renamed(change func(string) string) func(*session, acquireRequest) acquireReply {
	return request(func(r *acquireRequest) { r.Key = change(r.Key) })
}

func renewed(change func(renewRequest, *renewReply)) func(*session, renewRequest) renewReply {
	return func(c *session, r renewRequest) renewReply {
		reply := c.renew(r)
		change(r, &reply)
		return reply
	}
}

func released(change func(*releaseRequest)) func(*session, releaseRequest) releaseReply {
	return func(c *session, r releaseRequest) releaseReply {
		change(&r)
		return c.release(r)
	}
}

// cached answers what was answered with that status before from memory.
func cached(status store.AcquireStatus) func(*session, acquireRequest) acquireReply {
	return func(c *session, r acquireRequest) acquireReply {
		c.store.mu.Lock()
		before, known := c.store.seen[r.Owner]
		c.store.mu.Unlock()
		if known && before.Status == status {
			return before
		}
		reply := c.acquire(r)
		c.store.acquired(r.Owner, reply)
		return reply
	}
}

func without(kind store.EventKind) func(event) (event, bool) {
	return func(e event) (event, bool) { return e, e.Kind != kind }
}

func filtered(match func(key, prefix string) bool) func(*session, string) iter.Seq2[store.Info, error] {
	return func(c *session, prefix string) iter.Seq2[store.Info, error] {
		return func(yield func(store.Info, error) bool) {
			for info, err := range c.Session.List(context.Background(), "") {
				if match(info.Key, prefix) && !yield(info, err) {
					return
				}
			}
		}
	}
}
