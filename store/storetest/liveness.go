// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var livenessCases = []testCase{
	{"a dead waiter is skipped", queues, deadWaiterSkipped},
	{"a dead waiter keeps nobody from a free key", queues, deadQueueDoesNotBlock},
	{"heartbeats keep a waiter alive", queues, heartbeatsCount},
	{"a dropped waiter comes back to its place", queues, droppedComesBack},
	{"a dropped waiter is not refused by a full queue", queues, droppedIntoFullQueue},
	{"a waiter whose client left does not block the queue", queues, leftWaiter},
}

func deadWaiterSkipped(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	r := w.request()
	r.WaiterTTL = short
	dead, q := b.wait(r), c.wait(w.request())
	expired()
	h.release()
	q.granted()
	w.wantHeldBy(a, q.req)
	if _, told := b.find(store.EventGrant, dead.req.Owner); told {
		w.Error("got an EventGrant for the dead waiter, want none")
	}
}

// allDie has one client wait behind the other, and waits until both the waiter and the holding are
// dead.
func (w *world) allDie(holder, waiter *client) {
	w.Helper()
	r := w.request()
	r.WaiterTTL = short / 10 // it dies first: an expired holding may pass on at once
	_, end := w.waitBehind(holder, waiter, r)
	end.isOver()
}

func deadQueueDoesNotBlock(w *world) {
	a, b := w.join(), w.join()
	w.allDie(a, b)
	a.hold(w.try()) // no living waiter is ahead
}

func heartbeatsCount(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	r := w.request()
	r.WaiterTTL = 4 * short
	q := b.wait(r)
	c.wait(w.request())
	time.Sleep(3 * short)
	q.heartbeat()
	time.Sleep(2 * short) // longer than WaiterTTL after the first request, not after the second
	h.release()
	q.granted()
	w.wantHeldBy(a, q.req)
}

func droppedComesBack(w *world) {
	a, b, c, d := w.join(), w.join(), w.join(), w.join()
	h := a.hold(w.request())
	r := w.request()
	r.WaiterTTL = short
	dropped := b.wait(r)
	second, third := c.wait(w.request()), d.wait(w.request())
	expired()
	h.release() // passes over b
	h = second.granted()
	dropped.req.WaiterTTL = long
	ticket := dropped.req.Ticket
	dropped.heartbeat()
	if w.sessions() {
		if dropped.reply.Rank != 1 {
			w.Errorf("Rank of a dropped waiter that came back: got %d, want 1, at the tail", dropped.reply.Rank)
		}
		return
	}
	if dropped.reply.Rank != 0 || dropped.reply.Ticket != ticket {
		w.Errorf("dropped waiter that came back: got rank %d and ticket %d, want 0 and %d as before",
			dropped.reply.Rank, dropped.reply.Ticket, ticket)
	}
	third.heartbeat()
	if third.reply.Rank != 1 {
		w.Errorf("Rank of the one behind it: got %d, want 1", third.reply.Rank)
	}
	h.release()
	dropped.granted().release()
	third.granted().release()
}

func droppedIntoFullQueue(w *world) {
	a, b, c, d := w.join(), w.join(), w.join(), w.join()
	h := a.hold(w.request())
	r := w.request()
	r.WaiterTTL, r.QueueLimit = short, 1
	dropped := b.wait(r)
	second := c.wait(w.request())
	expired()
	h.release() // passes over b
	second.granted()
	d.wait(w.request()) // the queue is at b's limit now
	dropped.req.WaiterTTL = long
	dropped.heartbeat()
}

func leftWaiter(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	r := w.request()
	// A store that does not know who is connected uses these.
	r.WaiterTTL, r.GrantTTL = short, short
	b.wait(r)
	q := c.wait(w.request())
	if err := b.session.Close(context.Background()); err != nil {
		w.Errorf("Close: got %v, want no error", err)
	}
	h.release()
	w.wantHeldBy(a, q.poll().req)
}
