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
	defer t.settle(k)
	return t.acquireFrom(k, r)
}

func (t *txn) acquireFrom(k *lock, r store.AcquireRequest) store.AcquireReply {
	if k.heldBy(r.Owner) {
		k.until = later(k.until, t.now.Add(r.TTL))
		k.watch, k.wanted = r.NotifyQueued, r.NotifyRequests
		return k.granted()
	}
	if t.gone.Has(r.Owner) {
		return store.AcquireReply{Status: store.Withdrawn}
	}
	place := k.place(r.Owner)
	if place < 0 {
		switch {
		case !k.held && len(k.queue) == 0:
			t.grant(k, waiter{AcquireRequest: r, session: t.from}, r.TTL)
			return k.granted()
		case !r.Wait:
			return store.AcquireReply{
				Status: store.Held, Holder: k.description, HolderToken: k.token, HolderNotified: t.notifyRequested(k),
				Remaining: k.remaining(t.now), Waiters: len(k.queue),
			}
		case r.Ticket == 0 && r.QueueLimit > 0 && len(k.queue) >= r.QueueLimit:
			return store.AcquireReply{Status: store.Full}
		}
	}
	w := t.queue(k, r, place)
	if !k.held {
		t.pass(k, r.Owner)
	}
	if k.heldBy(r.Owner) {
		return k.granted()
	}
	rank := k.place(r.Owner)
	if rank == 0 {
		t.notifyRequested(k)
	}
	return store.AcquireReply{
		Status: store.Waiting, Remaining: k.remaining(t.now),
		Rank: rank, Ticket: w.Ticket, Mark: t.counter, WillNotify: r.NotifyRequests,
	}
}

// notifyRequested notifies the holder of a refused request, if the holder asked for that. It reports
// whether the holder was notified.
func (t *txn) notifyRequested(k *lock) bool {
	if !k.held || !k.wanted {
		return false
	}
	t.notify(k.session, store.Event{Kind: store.EventRequested, Owner: k.owner})
	return true
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
	if len(k.queue) == 0 && k.held && k.watch {
		t.notify(k.session, store.Event{Kind: store.EventQueued, Owner: k.owner})
	}
	k.insert(w)
	return w
}

// pass gives a free key to the first in its queue. The requesting owner gets the key in the reply,
// for its whole TTL. Any other owner is notified by an event and gets the key for its grant TTL, so
// that a lost event blocks the key for no longer.
func (t *txn) pass(k *lock, asking string) {
	if len(k.queue) == 0 {
		return
	}
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

// grant makes w the holder. Tokens are made only here.
func (t *txn) grant(k *lock, w waiter, ttl time.Duration) store.Grant {
	grant := store.Grant{Token: t.counter + 1, Reserved: spare}
	t.counter += 1 + spare
	k.holding = holding{
		held: true, owner: w.Owner, session: w.session, description: w.Description,
		grant: grant, token: grant.Token, until: t.now.Add(ttl), watch: w.NotifyQueued, wanted: w.NotifyRequests,
	}
	return grant
}

func (t *txn) renew(r store.RenewRequest) store.RenewReply {
	k := t.find(r.Key)
	switch {
	case k.heldBy(r.Owner):
		k.until = later(k.until, t.now.Add(r.TTL))
		k.token = max(k.token, r.Token)
		k.watch = k.watch || r.NotifyQueued
		t.raise(r.Token)
		return store.RenewReply{Waiters: len(k.queue)}
	default:
		return store.RenewReply{Err: k.lost()}
	}
}

func (t *txn) release(r store.ReleaseRequest) store.ReleaseReply {
	k := t.find(r.Key)
	defer t.settle(k)
	if r.Uncertain {
		// This is also needed if the owner is found below. That entry may come from a repeated
		// request, while the first one is still under way.
		t.gone.Add(r.Owner)
	}
	held, cause := k.heldBy(r.Owner), k.lost()
	switch {
	case held && r.HoldBack > 0:
		t.raise(r.Token)
		k.holdBack(t.now.Add(r.HoldBack))
	case held:
		t.raise(r.Token)
		k.holding = holding{}
	default:
		k.withdraw(r.Owner)
	}
	reply := store.ReleaseReply{WasHeld: held}
	if !held {
		reply.Cause = cause
	}
	if r.Requeue != nil {
		// The key is free but not passed on yet. The request joins at the tail, and the key is then
		// passed to the head.
		requeued := t.acquireFrom(k, *r.Requeue)
		reply.Requeue = &requeued
	}
	if held && !k.held {
		t.pass(k, "")
	}
	return reply
}

func (t *txn) force(key string, token int64) (held bool, err error) {
	k := t.find(key)
	defer t.settle(k)
	switch {
	case !k.held:
		return false, nil
	case token != 0 && token != k.token:
		return false, &store.OtherHolderError{Info: t.describe(k)}
	}
	if k.owner != "" {
		t.notify(k.session, store.Event{Kind: store.EventForced, Owner: k.owner})
	}
	k.holding = holding{}
	t.pass(k, "")
	return true, nil
}

func (t *txn) inspect(key string) store.Info { return t.describe(t.find(key)) }

func (t *txn) describe(k *lock) store.Info {
	info := store.Info{
		Key: k.key, Held: k.held, Holder: k.description, Token: k.token,
		Remaining: k.remaining(t.now), Waiters: len(k.queue),
	}
	for _, w := range k.queue[:min(len(k.queue), queueShown)] {
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
