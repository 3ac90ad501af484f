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
	since time.Time // when the client learned of it
}

// A waiter is a place in a queue.
type waiter struct {
	c     *client
	req   store.AcquireRequest // with the ticket of the last reply
	reply store.AcquireReply   // the last one
}

// hold acquires a key that has to be free.
func (c *client) hold(r store.AcquireRequest) holding {
	c.w.Helper()
	for tries := 1; ; tries++ {
		start := time.Now()
		reply := c.acquire(r)
		late := time.Since(start) >= r.TTL-slack // on a busy machine: a quorum hands out no lease that is over
		switch {
		case reply.Status == store.Granted:
			return holding{c, r, reply.Grant, time.Now()}
		case !late || tries == 5:
			c.w.Fatalf("Acquire of a free key: got status %d, want Granted", reply.Status)
		}
	}
}

// wait queues for a key that has to be held.
func (c *client) wait(r store.AcquireRequest) *waiter {
	c.w.Helper()
	q := &waiter{c: c, req: r}
	q.heartbeat()
	return q
}

// heartbeat repeats the request, which must find itself still waiting.
func (q *waiter) heartbeat() {
	q.c.w.Helper()
	q.reply = q.c.acquire(q.req)
	if q.reply.Status != store.Waiting {
		q.c.w.Fatalf("Acquire of a held key with Wait: got status %d, want Waiting", q.reply.Status)
	}
	q.req.Ticket = q.reply.Ticket
}

// granted waits for the handoff to q. By the contract a message announces it, unless the store has
// said by Recheck that messages are not reliable. The message may be that q should ask.
func (q *waiter) granted() holding {
	q.c.w.Helper()
	if q.reply.Recheck > 0 {
		return q.poll()
	}
	e := q.c.awaitThat("an event that the key was granted, or that the owner should ask", toAsk(q.req.Owner))
	if e.Kind == store.EventWake {
		return q.poll()
	}
	if e.GrantTTL != q.req.GrantTTL {
		q.c.w.Errorf("GrantTTL of the event: got %v, want %v as asked", e.GrantTTL, q.req.GrantTTL)
	}
	if q.c.w.store.Features().Tokens && (e.Grant.Token <= q.reply.Mark || q.reply.Mark == 0) {
		q.c.w.Errorf("token of the event: got %d, want more than %d, the Mark of the reply before it, and that a mark", e.Grant.Token, q.reply.Mark)
	}
	return holding{q.c, q.req, e.Grant, time.Now()}
}

// toAsk matches what a store sends to the waiter that it grants its key.
func toAsk(owner string) func(store.Event) bool {
	return func(e store.Event) bool {
		return e.Owner == owner && (e.Kind == store.EventGrant || e.Kind == store.EventWake)
	}
}

// poll repeats the request until the key is granted.
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

// next requests a key that usually becomes free within short, until it is granted. It does not
// check that the first answer is to wait, because a busy machine may answer too late. The case
// itself checks how long the grant took.
func (c *client) next(r store.AcquireRequest) holding {
	c.w.Helper()
	return (&waiter{c: c, req: r}).poll()
}

// An end is the time at which a holding ends by itself, as far as its client knows.
type end struct{ earliest, latest time.Time }

// isOver waits until the holding has ended.
func (e end) isOver() { time.Sleep(time.Until(e.latest)) }

// waitBehind makes a hold the key and b wait for it, and returns when the holding ends by itself.
// If the machine is too busy to do both within a TTL of short, the TTL is doubled.
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

// release gives the key back, which the client must have held.
func (h holding) release() {
	h.c.w.Helper()
	reply := h.c.release(store.ReleaseRequest{Key: h.req.Key, Owner: h.req.Owner, Token: h.Token})
	if !reply.WasHeld {
		h.c.w.Fatal("Release by the holder: got WasHeld false, want true")
	}
}

// lastToken returns the largest token that the holder may have used by now. Compare it with later
// tokens.
func (h holding) lastToken() int64 {
	last := h.Token + h.Reserved
	if h.TokensFollowClock {
		last += time.Since(h.since).Microseconds()
	}
	return last
}

// expired waits until a TTL of short has ended. It is called after the reply, so the TTL has also
// ended by the store's clock.
func expired() { time.Sleep(short + short/2) }

// wantHeldBy checks that the holder is the one of that request.
func (w *world) wantHeldBy(c *client, r store.AcquireRequest) {
	w.Helper()
	info := c.inspect(r.Key)
	if !info.Held || info.Holder != r.Description {
		w.Errorf("Inspect: got Held %v, Holder %q; want it held by %q", info.Held, info.Holder, r.Description)
	}
}

// wantRemains checks the remaining time of a holder's TTL: more than over, up to upTo. For a store
// with sessions the time must be unknown.
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

// sessions reports whether the store's server has sessions and no TTLs.
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

// catchUp asks until the answer is right. A server that has the session may lag behind the others; a store without
// sessions is asked once.
func (w *world) catchUp(isRight func() bool) {
	for end := time.Now().Add(patience); !isRight() && w.sessions() && time.Now().Before(end); {
	}
}
