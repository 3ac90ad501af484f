// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var wantedCases = []testCase{
	{"a holder that asked is told when someone is refused its key", messagesOfWanted, toldOfRefusal},
	{"a holder that asked is told when someone queues, and again when that one asks again", messagesOfWanted, toldOfWaiting},
	{"a waiter can ask to be told when it holds and others want the key", messagesOfWanted, toldAfterHandoff},
	{"nobody is told that others want the key who did not ask for that", messagesOfWanted, toldUnasked},
	{"a reply says whether the holder will be told", messagesOfWanted, saysWhetherTold},
	{"a release can ask for the key anew without waiting", wanting, triesAnew},
}

// watching is request by an owner that wants to be notified of others.
func (w *world) watching() store.AcquireRequest {
	r := w.request()
	r.NotifyRequests = true
	return r
}

func toldOfRefusal(w *world) {
	a, b := w.hearing(), w.join()
	h := a.hold(w.watching())
	for i := range 2 { // each time
		if reply := b.refused(w.try()); !reply.HolderNotified {
			w.Error("Told, of a holder that asked to hear: got false, want true")
		}
		a.awaitMany(store.EventRequested, h.req.Owner, i+1)
	}
}

func toldOfWaiting(w *world) {
	a, b := w.hearing(), w.join()
	h := a.hold(w.watching())
	q := b.wait(w.request())
	a.awaitMany(store.EventRequested, h.req.Owner, 1)
	q.heartbeat()
	a.awaitMany(store.EventRequested, h.req.Owner, 2)
}

func toldAfterHandoff(w *world) {
	a, b, c := w.join(), w.hearing(), w.join()
	h := a.hold(w.request())
	q := b.wait(w.watching())
	h.release()
	q.granted()
	c.refused(w.try())
	b.await(store.EventRequested, q.req.Owner)
}

func toldUnasked(w *world) {
	a, b := w.hearing(), w.join()
	h := a.hold(w.request())
	if reply := b.refused(w.try()); reply.HolderNotified {
		w.Error("Told, of a holder that did not ask to hear: got true, want false")
	}
	b.wait(w.request())
	b.force(w.key)
	a.awaitForced(h.req.Owner) // messages about one holding come in order
	if _, ok := a.find(store.EventRequested, h.req.Owner); ok {
		w.Error("the holder was told that others want its key, want it told of force only")
	}
}

func saysWhetherTold(w *world) {
	a, b := w.join(), w.hearing()
	unasked := w.request()
	if reply := a.acquire(unasked); reply.WillNotify {
		w.Error("Watched of a holder that did not ask: got true, want false")
	}
	q := b.wait(w.request())
	if q.reply.WillNotify {
		w.Error("Watched of a waiter that did not ask: got true, want false")
	}
	asked := b.wait(w.watching())
	for end := time.Now().Add(patience); !asked.reply.WillNotify && time.Now().Before(end); { // its messages may be settling
		time.Sleep(pause)
		asked.heartbeat()
	}
	if !asked.reply.WillNotify {
		w.Errorf("Watched of a waiter that asked: got false for %v, want true", patience)
	}
	b.release(store.ReleaseRequest{Key: w.key, Owner: q.req.Owner})
	a.release(store.ReleaseRequest{Key: w.key, Owner: unasked.Owner})
	if reply := b.acquire(asked.req); reply.Status != store.Granted || !reply.WillNotify {
		w.Errorf("a holder that asked: got %+v, want it granted and Watched", reply)
	}
}

func triesAnew(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	again := w.try()
	reply := a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, Requeue: &again})
	if !reply.WasHeld || reply.Requeue == nil || reply.Requeue.Status != store.Granted {
		w.Fatalf("a release that tries anew: got %+v (%+v), want the key granted again", reply, reply.Requeue)
	}
	if reply.Requeue.Token <= h.Token {
		w.Errorf("token: got %d after %d, want a larger one", reply.Requeue.Token, h.Token)
	}
	w.wantHeldBy(a, again)
	q := b.wait(w.request())
	third := w.try()
	reply = a.release(store.ReleaseRequest{Key: w.key, Owner: again.Owner, Token: reply.Requeue.Token, Requeue: &third})
	if !reply.WasHeld || reply.Requeue == nil || reply.Requeue.Status != store.Held {
		w.Errorf("a release that tries anew before a waiter: got %+v (%+v), want Held", reply, reply.Requeue)
	}
	w.wantHeldBy(b, q.req)
}

// refused requests a key that has to be held, without waiting.
func (c *client) refused(r store.AcquireRequest) store.AcquireReply {
	c.w.Helper()
	reply := c.acquire(r)
	c.w.wantStatus("Acquire of a held key without Wait", reply, store.Held)
	return reply
}

// awaitMany waits for n events of that kind for owner.
func (c *client) awaitMany(kind store.EventKind, owner string, n int) {
	c.w.Helper()
	timeout := time.After(patience)
	for c.count(kind, owner) < n {
		select {
		case <-c.news:
		case <-timeout:
			c.w.Fatalf("got %d events of kind %d for the owner in %v, want %d", c.count(kind, owner), kind, patience, n)
		}
	}
}

// count returns how many events of that kind have come for owner.
func (c *client) count(kind store.EventKind, owner string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		if e.Kind == kind && e.Owner == owner {
			n++
		}
	}
	return n
}
