// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A txn is the time for which one call has the store to itself, with the mutex held. The clock
// stands still in it.
type txn struct {
	*Store
	from *session
	now  time.Time
	mail []mail // to be delivered when the mutex is free again
}

type mail struct {
	to    *session
	event store.Event
}

// tell queues an event, unless the client has left.
func (t *txn) notify(to *session, event store.Event) {
	if !to.left {
		t.mail = append(t.mail, mail{to, event})
	}
}

func (t *txn) acquire(r store.AcquireRequest) store.AcquireReply {
	k := t.find(r.Key)
	defer t.keep(k)
	return t.acquireFrom(k, r)
}

func (t *txn) acquireFrom(k *lock, r store.AcquireRequest) store.AcquireReply {
	if err := features.Check(r.Share, r.Extra); err != nil {
		return store.AcquireReply{Err: err}
	}
	if h := k.holding(r.Owner); h != nil {
		h.until = later(h.until, t.now.Add(r.TTL))
		h.watch, h.wanted = r.NotifyQueued, r.NotifyRequests
		return k.granted(h)
	}
	if t.gone.Has(r.Owner) {
		return store.AcquireReply{Status: store.Withdrawn}
	}
	if k.tooMuch(r.Share) {
		t.withdraw(k, r.Owner)
		t.serve(k, "")
		return store.AcquireReply{Status: store.TooMuch, Limit: k.limit}
	}
	place := k.place(r.Owner)
	if place < 0 {
		if k.held() {
			t.serve(k, "") // who blocked the others may have died
		}
		switch {
		case len(k.queue) == 0 && k.fits(r.Share):
			t.grant(k, waiter{AcquireRequest: r, session: t.from}, r.TTL)
			return k.granted(k.holding(r.Owner))
		case !r.Wait:
			return store.AcquireReply{
				Status: store.Held, Holder: k.description(), HolderToken: k.token(), HolderNotified: t.notifyRequested(k),
				Remaining: k.remaining(r.Share, t.now), Waiters: len(k.queue), Limit: k.inForce(r.Share), Used: k.usedBeside(r.Share),
			}
		case r.Ticket == 0 && r.QueueLimit > 0 && len(k.queue) >= r.QueueLimit:
			return store.AcquireReply{Status: store.Full, Limit: k.inForce(r.Share)}
		}
	}
	w := t.queue(k, r, place)
	t.serve(k, r.Owner)
	if h := k.holding(r.Owner); h != nil {
		return k.granted(h)
	}
	rank := k.place(r.Owner)
	if rank == 0 {
		t.notifyRequested(k)
	}
	return store.AcquireReply{
		Status: store.Waiting, Holder: k.description(), HolderToken: k.token(), Remaining: k.remaining(r.Share, t.now),
		Rank: rank, Ticket: w.Ticket, Mark: t.counter, WillNotify: r.NotifyRequests, Limit: k.inForce(r.Share),
		Used: k.usedBeside(r.Share),
	}
}

// notifyRequested notifies the holders of a refused request, if they asked for that. It reports
// whether one was notified.
func (t *txn) notifyRequested(k *lock) (notified bool) {
	for _, h := range k.holders {
		if h.wanted {
			t.notify(h.session, store.Event{Kind: store.EventRequested, Owner: h.owner})
			notified = true
		}
	}
	return notified
}

// queue adds the request to the queue, or records its heartbeat if it is already there.
func (t *txn) queue(k *lock, r store.AcquireRequest, place int) waiter {
	w := waiter{AcquireRequest: r, session: t.from, since: t.now, deadline: t.now.Add(r.WaiterTTL)}
	if place >= 0 {
		w.Ticket, w.since = k.queue[place].Ticket, k.queue[place].since
		k.queue[place] = w
		return w
	}
	if w.Ticket == 0 {
		t.counter++
		w.Ticket = t.counter
	}
	if len(k.queue) == 0 {
		for _, h := range k.holders {
			if h.watch {
				t.notify(h.session, store.Event{Kind: store.EventQueued, Owner: h.owner})
			}
		}
	}
	k.insert(w)
	return w
}

// serve gives the key to the first in its queue, and to the next ones, as long as their shares fit.
// A first waiter that requests more permits than there are leaves, and is told to ask.
func (t *txn) serve(k *lock, asking string) {
	for n := 0; len(k.queue) > 0 && !k.heldWhole(); n++ {
		large := k.tooMuch(k.queue[0].Share)
		switch {
		case !large && !k.fits(k.queue[0].Share):
			return
		case n == mostServed:
			t.wake(k) // its request serves the next ones
			return
		case large:
			t.wake(k)
			k.pop()
		default:
			t.grantFirst(k, asking)
		}
	}
}

// grantFirst gives the key to the first in its queue. The requesting owner gets the key in the reply,
// for its whole TTL. Any other owner is notified by an event and gets the key for its grant TTL, so
// that a lost event blocks the key for no longer.
func (t *txn) grantFirst(k *lock, asking string) {
	w := k.pop()
	if w.Owner == asking {
		t.grant(k, w, w.TTL)
		return
	}
	grant := t.grant(k, w, w.GrantTTL)
	t.notify(w.session, store.Event{
		Kind: store.EventGrant, Owner: w.Owner,
		Grant: grant, GrantTTL: w.GrantTTL, Waiters: len(k.queue),
	})
}

// wake asks the first waiter to request the key again. Its request learns for how long the key is held
// back, or serves those for whom the last step had no time, or is refused.
func (t *txn) wake(k *lock) {
	if len(k.queue) > 0 {
		t.notify(k.queue[0].session, store.Event{Kind: store.EventWake, Owner: k.queue[0].Owner})
	}
}

// grant makes w a holder. Tokens are made only here, and where a holder keeps a part.
func (t *txn) grant(k *lock, w waiter, ttl time.Duration) store.Grant {
	grant := store.Grant{Token: t.counter + 1}
	switch w.Share.Mode {
	case store.Exclusive:
		grant.Reserved = spare
	case store.Shared:
		grant.Fence = k.fence(grant.Token)
	case store.Permits:
		w.Share.Weight += k.extra(&w)
		grant.Weight = w.Share.Weight
	}
	t.counter = grant.Token + grant.Reserved
	k.holders = append(k.holders, holding{
		owner: w.Owner, session: w.session, description: w.Description, share: w.Share,
		grant: grant, token: grant.Token, until: t.now.Add(ttl), watch: w.NotifyQueued, wanted: w.NotifyRequests,
	})
	return grant
}

func (t *txn) renew(r store.RenewRequest) store.RenewReply {
	k := t.find(r.Key)
	h := k.holding(r.Owner)
	if h == nil {
		return store.RenewReply{Err: k.lost(r.Share.Mode)}
	}
	h.until = later(h.until, t.now.Add(r.TTL))
	h.token = max(h.token, r.Token)
	h.watch = h.watch || r.NotifyQueued
	h.shrink(r.Share.Weight)
	t.raise(r.Token)
	return store.RenewReply{Waiters: len(k.queue), Limit: k.inForce(h.share)}
}

func (t *txn) release(r store.ReleaseRequest) store.ReleaseReply {
	if err := features.CheckRest(&r); err != nil {
		return store.ReleaseReply{Err: err}
	}
	k := t.find(r.Key)
	defer t.keep(k)
	if r.Uncertain {
		// This is also needed if the owner is found below. That entry may come from a repeated
		// request, while the first one is still under way.
		t.gone.Add(r.Owner)
	}
	h := k.holding(r.Owner)
	reply := store.ReleaseReply{WasHeld: h != nil}
	switch {
	case h == nil:
		reply.Cause = k.lost(k.mode())
		t.withdraw(k, r.Owner)
	case r.Rest != nil:
		reply.Grant, reply.Err = t.keepRest(k, h, &r)
	case r.HoldBack > 0:
		t.raise(r.Token)
		h.holdBack(t.now.Add(r.HoldBack))
	default:
		t.raise(r.Token)
		k.drop(r.Owner)
	}
	if r.Requeue != nil {
		// The key is free but not passed on yet. The request joins at the tail, and the key is then
		// passed to the head.
		requeued := t.acquireFrom(k, *r.Requeue)
		reply.Requeue = &requeued
	}
	t.serve(k, "")
	if reply.WasHeld && k.heldBack() {
		t.wake(k) // the first one knows another time
	}
	return reply
}

// withdraw removes an owner from the queue. Those behind it may have waited only for it.
func (t *txn) withdraw(k *lock, owner string) {
	first := k.place(owner) == 0
	k.withdraw(owner)
	if first && k.heldBack() {
		t.wake(k) // the one behind it did not know that it would be the first
	}
}

func (t *txn) force(key string, token int64) (held bool, err error) {
	k := t.find(key)
	defer t.keep(k)
	switch {
	case !k.held():
		return false, nil
	case token != 0 && token != k.token():
		return false, &store.OtherHolderError{Info: t.describe(k)}
	}
	for _, h := range k.holders {
		if h.owner != "" {
			t.notify(h.session, store.Event{Kind: store.EventForced, Owner: h.owner})
		}
	}
	k.holders = nil
	t.serve(k, "")
	return true, nil
}

func (t *txn) inspect(key string) store.Info { return t.describe(t.find(key)) }

func (t *txn) describe(k *lock) store.Info {
	info := store.Info{
		Key: k.key, Held: k.held(), Holder: k.description(), Token: k.token(),
		Remaining: k.remaining(store.Share{}, t.now), Waiters: len(k.queue), Mode: k.mode(),
		StoredLimit: int(k.limit),
	}
	if info.Mode == store.Permits {
		info.Used, info.Limit = k.used(), int(k.inForce(k.holders[0].share))
	}
	if info.Mode != store.Exclusive {
		for i := range k.holders[:min(len(k.holders), shown)] {
			h := &k.holders[i]
			info.Holders = append(info.Holders, store.HolderInfo{
				Holder: h.description, Token: h.shown(), Weight: int(h.share.Weight), Remaining: h.until.Sub(t.now),
			})
		}
	}
	for _, w := range k.queue[:min(len(k.queue), shown)] {
		info.Queue = append(info.Queue, store.WaiterInfo{Holder: w.Description, Age: t.now.Sub(w.since)})
	}
	return info
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
