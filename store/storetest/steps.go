// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A holding is a key that a client was granted.
type holding struct {
	c   *client
	req store.AcquireRequest
	store.Grant
	since time.Time // when the client knew
}

// A waiter is a place in a queue.
type waiter struct {
	c     *client
	req   store.AcquireRequest // with the ticket of the last reply
	reply store.AcquireReply   // the last one
}

// hold acquires what has to be free.
func (c *client) hold(r store.AcquireRequest) holding {
	c.w.Helper()
	reply := c.acquire(r)
	if reply.Status != store.Granted {
		c.w.Fatalf("Acquire of a free key: got status %d, want Granted", reply.Status)
	}
	return holding{c, r, reply.Grant, time.Now()}
}

// wait queues for what has to be held.
func (c *client) wait(r store.AcquireRequest) *waiter {
	c.w.Helper()
	q := &waiter{c: c, req: r}
	q.heartbeat()
	return q
}

// heartbeat asks again and has to find itself still waiting.
func (q *waiter) heartbeat() {
	q.c.w.Helper()
	q.reply = q.c.acquire(q.req)
	if q.reply.Status != store.Waiting {
		q.c.w.Fatalf("Acquire of a held key with Wait: got status %d, want Waiting", q.reply.Status)
	}
	q.req.Ticket = q.reply.Ticket
}

// granted waits for the handoff to q. By the contract a message comes for it,
// unless the store has said by Recheck that messages can't be counted on.
func (q *waiter) granted() holding {
	q.c.w.Helper()
	if q.reply.Recheck > 0 {
		return q.poll()
	}
	e := q.c.await(store.EventGrant, q.req.Owner)
	if e.GrantTTL != q.req.GrantTTL {
		q.c.w.Errorf("GrantTTL of the event: got %v, want %v as asked", e.GrantTTL, q.req.GrantTTL)
	}
	if q.c.w.store.Features().Tokens && e.Grant.Token <= q.reply.Mark {
		q.c.w.Errorf("token of the event: got %d, want more than %d, the Mark of the reply before it", e.Grant.Token, q.reply.Mark)
	}
	return holding{q.c, q.req, e.Grant, time.Now()}
}

// poll asks again until the key is granted.
func (q *waiter) poll() holding {
	q.c.w.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(pause) {
		reply := q.c.acquire(q.req)
		switch reply.Status {
		case store.Granted:
			return holding{q.c, q.req, reply.Grant, time.Now()}
		case store.Waiting:
			q.reply, q.req.Ticket = reply, reply.Ticket
		default:
			q.c.w.Fatalf("Acquire of a waiter: got status %d, want Waiting or Granted", reply.Status)
		}
	}
	q.c.w.Fatalf("waiter was not granted in %v of asking", patience)
	panic("unreachable")
}

// next asks for what ends within short, as a rule, until it is granted. That the first
// answer is to wait is not asked for: a busy machine may take longer to give it. How long
// it took until the grant is for the case to look at.
func (c *client) next(r store.AcquireRequest) holding {
	c.w.Helper()
	return (&waiter{c: c, req: r}).poll()
}

// An end is when a holding ends by itself, as far as its client can say.
type end struct{ earliest, latest time.Time }

// isOver waits until it has ended.
func (e end) isOver() { time.Sleep(time.Until(e.latest)) }

// waitBehind has a hold the key, and b wait for it, and says when the holding ends by
// itself. Where the machine is too busy to do both within a TTL of short, it is doubled.
func (w *world) waitBehind(a, b *client, waits store.AcquireRequest) (*waiter, end) {
	w.Helper()
	for ttl := short; ttl < patience; ttl *= 2 {
		r := w.request()
		r.TTL = ttl
		start := time.Now()
		a.hold(r)
		reply := b.acquire(waits)
		if reply.Status == store.Waiting {
			waits.Ticket = reply.Ticket
			return &waiter{b, waits, reply}, end{start.Add(ttl), time.Now().Add(ttl + short/2)}
		}
		if took := time.Since(start); took < ttl-slack {
			w.Fatalf("Acquire with Wait of a key that was held %v ago for %v: got status %d, want Waiting", took, ttl, reply.Status)
		}
		b.release(store.ReleaseRequest{Key: waits.Key, Owner: waits.Owner})
		waits.Owner = newOwner()
	}
	w.Fatalf("Acquire with Wait took longer than any TTL up to %v", patience)
	panic("unreachable")
}

// release gives the key back, which the client must have had.
func (h holding) release() {
	h.c.w.Helper()
	reply := h.c.release(store.ReleaseRequest{Key: h.req.Key, Owner: h.req.Owner, Token: h.Token})
	if !reply.WasHeld {
		h.c.w.Fatal("Release by the holder: got WasHeld false, want true")
	}
}

// lastToken is the largest token that the holder may have used by now. What
// comes after is to be compared with what it was before.
func (h holding) lastToken() int64 {
	last := h.Token + h.Reserved
	if h.TokensFollowClock {
		last += time.Since(h.since).Microseconds()
	}
	return last
}

// expired waits until what was asked for with a TTL of short is over. It is
// called after the reply, so the store's clock is past the TTL, too.
func expired() { time.Sleep(short + short/2) }

// wantHeldBy checks who holds the key: that request's holder.
func (w *world) wantHeldBy(c *client, r store.AcquireRequest) {
	w.Helper()
	info := c.inspect(r.Key)
	if !info.Held || info.Holder != r.Description {
		w.Errorf("Inspect: got Held %v, Holder %q; want it held by %q", info.Held, info.Holder, r.Description)
	}
}

// wantRemains checks what is said to remain of a holder's TTL: more than over, up
// to upTo. Of one that only the client's side of the store knows, nothing is said.
func (w *world) wantRemains(what string, got, over, upTo time.Duration) {
	w.Helper()
	switch {
	case w.sessions():
		if got >= 0 {
			w.Errorf("%s: got %v, want it unknown, by the store's Features", what, got)
		}
	case got <= over || got > upTo:
		w.Errorf("%s: got %v, want more than %v and at most %v", what, got, over, upTo)
	}
}

// sessions reports whether the store's server knows sessions and no TTLs.
func (w *world) sessions() bool { return w.store.Features().Sessions }

// wantFree checks that nobody holds the key.
func (w *world) wantFree(c *client, key string) {
	w.Helper()
	if info := c.inspect(key); info.Held {
		w.Errorf("Inspect: got held by %q, want free", info.Holder)
	}
}

// wantStatus checks one reply's status.
func (w *world) wantStatus(what string, reply store.AcquireReply, want store.AcquireStatus) {
	w.Helper()
	if reply.Status != want {
		w.Errorf("%s: got status %d, want %d", what, reply.Status, want)
	}
}
