// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// ofMode changes what is asked by owners that take the key in this mode.
func ofMode(mode store.Mode, change func(*acquireRequest)) func(*session, acquireRequest) acquireReply {
	return request(func(r *acquireRequest) {
		if r.Share.Mode == mode {
			change(r)
		}
	})
}

// admitting grants what the store has refused, if the key is held in one mode and requested in another.
func admitting(held, requested store.Mode) func(*session, acquireRequest) acquireReply {
	return func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		if r.Share.Mode == requested && reply.Status != store.Granted && c.inspect(r.Key).Mode == held {
			reply.Status = store.Granted
		}
		return reply
	}
}

// staying leaves a waiter in the queue of a key that is held in this mode.
func staying(mode store.Mode) func(*session, releaseRequest) releaseReply {
	return func(c *session, r releaseRequest) releaseReply {
		if r.Token == 0 && c.inspect(r.Key).Mode == mode {
			return releaseReply{Cause: store.ErrExpired}
		}
		return c.release(r)
	}
}

// twice takes the repeated request of an owner for that of another one.
func twice(mode store.Mode) func(*session, acquireRequest) acquireReply {
	return func(c *session, r acquireRequest) acquireReply {
		if _, again := c.store.acquired(r.Owner, acquireReply{}); again && r.Share.Mode == mode {
			r.Owner += "'"
		}
		return c.acquire(r)
	}
}

// anew gives all back and takes the rest again.
func anew(c *session, r releaseRequest) releaseReply {
	if r.Rest == nil {
		return c.release(r)
	}
	rest := *r.Rest
	r.Rest = nil
	reply := c.release(r)
	if reply.WasHeld {
		reply.Grant = c.acquire(acquireRequest{Key: r.Key, Owner: r.Owner, TTL: time.Hour, Share: rest}).Grant
	}
	return reply
}

var shareFaults = []fault{
	// Readers.
	{breaks: "readers exclude each other", caught: "readers hold a key together", acquire: ofMode(store.Shared, func(r *acquireRequest) { r.Share = store.Share{} })},
	{breaks: "a writer joins readers", caught: "a writer waits for every reader", acquire: admitting(store.Shared, store.Exclusive)},
	{breaks: "a reader passes a writer that waits", caught: "a reader does not pass a writer that waits", acquire: admitting(store.Shared, store.Shared)},
	{breaks: "readers are granted one by one", caught: "readers next to each other are granted together", acquire: func(c *session, r acquireRequest) acquireReply {
		if r.Share.Mode == store.Shared && c.inspect(r.Key).Held {
			r.Share = store.Share{}
		}
		return c.acquire(r)
	}},
	{breaks: "a writer that leaves stays in the queue", caught: "a writer that leaves the queue lets readers in", release: staying(store.Shared)},
	{breaks: "a renewal revives a reader", caught: "a reader that dies leaves the others alone", renew: renewed(func(r renewRequest, reply *renewReply) {
		if r.Share.Mode == store.Shared {
			reply.Err = nil
		}
	})},
	{breaks: "the death of a reader ends all", caught: "a reader that dies leaves the others alone", acquire: ofMode(store.Shared, func(r *acquireRequest) { r.TTL = min(r.TTL, time.Second/2) })},
	{breaks: "each reader has its own token", caught: "readers hold a key together", acquire: replied(func(r *acquireReply) {
		if r.Fence != 0 {
			r.Fence = r.Token
		}
	})},
	{breaks: "the token of readers is older than the writer's", caught: "readers have one token between those of the writers", acquire: replied(func(r *acquireReply) {
		if r.Fence != 0 {
			r.Fence -= 1 << 40
		}
	})},
	{breaks: "a reader that repeats is two", caught: "a repeated request of a reader finds what it has", acquire: twice(store.Shared)},
	{breaks: "a writer that reads on gives all back first", caught: "a writer can go on as a reader", release: anew},
	{breaks: "a writer that reads on has new numbers each time", caught: "what goes on as a reader can be said again", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		reply.Grant.Token += c.store.calls.Add(1)
		return reply
	}},
	{breaks: "readers are not told of force", caught: "force takes a key from all its readers", event: without(store.EventForced)},
	{breaks: "a hundred readers are enough", caught: "any number of readers come in", acquire: func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		if r.Share.Mode == store.Shared && reply.Status == store.Granted && c.store.calls.Add(1) > 100 {
			return acquireReply{Status: store.Waiting, Ticket: r.Ticket}
		}
		return reply
	}},
	{breaks: "shares that the store lacks are served", caught: "a store without shares refuses them and changes nothing", features: func(f store.Features) store.Features {
		f.Shared = false
		return f
	}},

	// Permits.
	{breaks: "permits have no limit", caught: "permits are held together up to their limit", acquire: ofMode(store.Permits, func(r *acquireRequest) { r.Share.Limit = 1000 })},
	{breaks: "a reply says that one permit is out", caught: "a reply to who gets no permits says how many are out", acquire: func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		reply.Used = min(reply.Used, 1)
		return reply
	}},
	{breaks: "a small request passes a large one", caught: "a large request for permits is not passed by smaller ones", acquire: func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		if info := c.inspect(r.Key); reply.Status != store.Granted && r.Share.Mode == store.Permits && info.Used+int(r.Share.Weight) <= info.Limit {
			reply.Status = store.Granted
		}
		return reply
	}},
	{breaks: "a large request that leaves stays in the queue", caught: "a large request for permits that leaves lets the others in", release: staying(store.Permits)},
	{breaks: "a waiter gets as many permits as it wanted first", caught: "a request for more permits than before keeps its place", acquire: ofMode(store.Permits, func(r *acquireRequest) {
		if r.Ticket != 0 {
			r.Share.Weight = 1
		}
	})},
	{breaks: "more permits are granted whoever waits", caught: "more permits than needed are granted if nobody waits", acquire: request(func(r *acquireRequest) {
		if r.Extra == 1 {
			r.Share.Weight++
		}
	})},
	{breaks: "a part is not given back", caught: "permits can be given back in parts", release: func(c *session, r releaseRequest) releaseReply {
		if r.Rest != nil {
			return releaseReply{WasHeld: true}
		}
		return c.release(r)
	}},
	{breaks: "a part that comes late raises", caught: "a part that is said again or late raises nothing", release: anew},
	{breaks: "the limit of the holders does not count", caught: "the smallest limit of the holders counts", acquire: ofMode(store.Permits, func(r *acquireRequest) { r.Share.Limit = max(r.Share.Limit, 5) })},
	{breaks: "a renewal lowers no permits", caught: "a renewal lowers permits and raises none", renew: func(c *session, r renewRequest) renewReply {
		r.Share = store.Share{}
		return c.renew(r)
	}},
	{breaks: "a renewal raises permits", caught: "a renewal lowers permits and raises none", renew: func(c *session, r renewRequest) renewReply {
		anew(c, releaseRequest{Key: r.Key, Owner: r.Owner, Rest: &r.Share})
		return c.renew(r)
	}},
	{breaks: "a renewal ends what is held back", caught: "a renewal with the weight from before a part was held back changes nothing", renew: func(c *session, r renewRequest) renewReply {
		if info := c.inspect(r.Key); len(info.Holders) == 2 {
			_, _ = c.Session.Force(context.Background(), r.Key, 0)
			c.acquire(acquireRequest{Key: r.Key, Owner: r.Owner, TTL: time.Hour, Share: store.Share{Mode: store.Permits, Weight: 1, Limit: 3}})
		}
		return c.renew(r)
	}},
	{breaks: "who takes the whole key takes a permit", caught: "who takes the whole key waits for all permits", acquire: func(c *session, r acquireRequest) acquireReply {
		if r.Share == (store.Share{}) && c.inspect(r.Key).Mode == store.Permits {
			r.Share = store.Share{Mode: store.Permits, Weight: 1, Limit: 2}
		}
		return c.acquire(r)
	}},
	{breaks: "readers join holders of permits", caught: "permits and readers exclude each other", acquire: admitting(store.Permits, store.Shared)},
	{breaks: "a part is not held back", caught: "permits that are given up can be held back", release: released(func(r *releaseRequest) {
		if r.Rest != nil {
			r.HoldBack = 0
		}
	})},
	{breaks: "nobody is told that permits are held back", caught: "the first waiter is told when permits are held back", event: without(store.EventWake)},
	{breaks: "a waiter behind one that died has permits for the grant TTL", caught: "a waiter behind one that died is granted permits once", acquire: ofMode(store.Permits, func(r *acquireRequest) { r.TTL = min(r.TTL, r.GrantTTL) })},
	{breaks: "a reader behind a writer that died comes in for the grant TTL", caught: "a reader behind a writer that died comes in once", acquire: ofMode(store.Shared, func(r *acquireRequest) { r.TTL = min(r.TTL, r.GrantTTL) })},
	{breaks: "permits do not expire", caught: "a holder of permits that dies gives them back", acquire: ofMode(store.Permits, func(r *acquireRequest) { r.TTL = time.Hour })},
	{breaks: "a holder of permits that repeats is two", caught: "a repeated request for permits finds what it has", acquire: twice(store.Permits)},
	{breaks: "senseless requests are mended", caught: "requests for permits that make no sense are refused", acquire: ofMode(store.Permits, func(r *acquireRequest) {
		r.Share.Weight = max(r.Share.Weight, 1)
		r.Share.Limit = max(r.Share.Limit, r.Share.Weight)
	})},
	{breaks: "permits that the store lacks are served", caught: "a store without permits refuses them and changes nothing", features: func(f store.Features) store.Features {
		f.Permits = false
		return f
	}},
	{
		breaks: "what is lacked is refused too late", caught: "a store without permits refuses them and changes nothing",
		features: func(f store.Features) store.Features {
			f.Permits = false
			return f
		},
		acquire: func(c *session, r acquireRequest) acquireReply {
			reply := c.acquire(r)
			if r.Share.Mode == store.Permits {
				reply.Err = store.ErrUnsupported
			}
			return reply
		},
		release: func(c *session, r releaseRequest) releaseReply {
			if r.Rest != nil {
				return releaseReply{Err: store.ErrUnsupported}
			}
			return c.release(r)
		},
	},
}
