// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"context"
	"iter"

	"github.com/asynclock/asynclock-go/store"
)

// storing changes what is stored.
func storing(change func(limit, before int32) int32) func(*session, string, int32) error {
	return func(c *session, key string, limit int32) error {
		return c.setLimit(key, change(limit, int32(c.inspect(key).StoredLimit)))
	}
}

var limitFaults = []fault{
	{breaks: "a limit is not stored", caught: "a stored limit counts instead of the others", limit: storing(func(_, before int32) int32 { return before })},
	{breaks: "one's own limit counts beside the stored one", caught: "a stored limit counts instead of the others", acquire: func(c *session, r acquireRequest) acquireReply {
		if c.inspect(r.Key).Used+int(r.Share.Weight) > int(r.Share.Limit) {
			return acquireReply{Status: store.Held}
		}
		return c.acquire(r)
	}},
	{breaks: "a reply says the limit that was requested", caught: "a reply says the limit in force", acquire: func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		reply.Limit = r.Share.Limit
		return reply
	}},
	{breaks: "a renewal says the holder's own limit", caught: "a renewal says the limit in force", renew: func(c *session, r renewRequest) renewReply {
		reply := c.renew(r)
		reply.Limit = r.Share.Limit
		return reply
	}},
	{breaks: "nobody is told of a limit", caught: "holders of permits are told of a limit", event: without(store.EventWake)},
	{breaks: "a larger limit is for later requests", caught: "a larger limit lets waiters in", event: without(store.EventGrant)},
	{breaks: "a larger limit is not stored", caught: "a larger limit lets waiters in", limit: storing(func(limit, before int32) int32 {
		if before > 0 {
			return min(limit, before)
		}
		return limit
	})},
	{breaks: "a larger limit lets a hundred waiters in", caught: "a larger limit lets any number of waiters in", acquire: func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		if reply.Status == store.Granted && c.store.calls.Add(1) > 100 {
			return acquireReply{Status: store.Waiting, Ticket: r.Ticket}
		}
		return reply
	}},
	{breaks: "a smaller limit ends all", caught: "a smaller limit takes nothing and lets nobody in until enough was given back", limit: func(c *session, key string, limit int32) error {
		if int(limit) < c.inspect(key).Used {
			_, _ = c.Session.Force(context.Background(), key, 0)
		}
		return c.setLimit(key, limit)
	}},
	{breaks: "a smaller limit is not stored", caught: "a smaller limit takes nothing and lets nobody in until enough was given back", limit: storing(func(limit, before int32) int32 { return max(limit, before) })},
	{breaks: "a limit is never forgotten", caught: "a limit that is forgotten is everyone's own again", limit: storing(func(limit, before int32) int32 {
		if limit == 0 {
			return before
		}
		return limit
	})},
	{breaks: "a limit ends with the last holder", caught: "a limit outlives those who hold the key", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		if !c.inspect(r.Key).Held {
			_ = c.setLimit(r.Key, 0)
		}
		return reply
	}},
	{breaks: "a key with a limit is listed", caught: "a limit outlives those who hold the key", list: func(c *session, prefix string) iter.Seq2[store.Info, error] {
		return func(yield func(store.Info, error) bool) { yield(c.inspect(prefix), nil) }
	}},
	{breaks: "who requests too much waits", caught: "a request above the limit is refused and not queued", acquire: replied(func(r *acquireReply) {
		if r.Status == store.TooMuch {
			r.Status = store.Waiting
		}
	})},
	{breaks: "who requests too much is granted what there is", caught: "a request above the limit is refused and not queued", acquire: func(c *session, r acquireRequest) acquireReply {
		if stored := c.inspect(r.Key).StoredLimit; stored > 0 {
			r.Share.Weight = min(r.Share.Weight, int32(stored))
		}
		return c.acquire(r)
	}},
	{breaks: "a waiter above the limit stays", caught: "a waiter above the limit leaves, and those behind it are served", limit: storing(func(limit, _ int32) int32 { return max(limit, 5) })},
	{breaks: "a waiter above the limit is not told", caught: "a waiter above the limit is told to ask", event: without(store.EventWake)},
	{breaks: "a later waiter above the limit stays", caught: "a waiter above the limit that is not the first leaves when it asks", acquire: func(c *session, r acquireRequest) acquireReply {
		if stored := c.inspect(r.Key).StoredLimit; stored > 0 && int(r.Share.Weight) > stored {
			return acquireReply{Status: store.TooMuch, Limit: int32(stored)}
		}
		return c.acquire(r)
	}},
	{breaks: "a waiter that comes back is the last", caught: "a waiter for which the limit was raised again has its place", acquire: request(func(r *acquireRequest) { r.Ticket = 0 })},
	{breaks: "a hundred waiters leave", caught: "any number of waiters leave", acquire: func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		if reply.Status == store.TooMuch && c.store.calls.Add(1) > 100 {
			reply.Status = store.Waiting
		}
		return reply
	}},
	{breaks: "more permits are granted up to one's own limit", caught: "more permits than needed are granted up to the limit", acquire: request(func(r *acquireRequest) {
		r.Extra = min(r.Extra, r.Share.Limit-r.Share.Weight)
	})},
	{breaks: "a limit concerns everybody", caught: "a limit concerns holders of permits only", acquire: func(c *session, r acquireRequest) acquireReply {
		if info := c.inspect(r.Key); info.StoredLimit > 0 && info.Held && r.Share.Mode == store.Shared {
			return acquireReply{Status: store.Held}
		}
		return c.acquire(r)
	}},
	{breaks: "a senseless limit is mended", caught: "a limit that makes no sense is refused", limit: storing(func(limit, _ int32) int32 { return min(max(limit, 1), store.MaxPermits) })},
	{breaks: "a limit is stored after its context", caught: "no limit is stored for a context or a session that has ended", context: func(context.Context) context.Context { return context.Background() }},
	{breaks: "limits that the store lacks are stored", caught: "a store without limits refuses them and changes nothing", features: func(f store.Features) store.Features {
		f.Limits = false
		return f
	}},
}
