// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var queueCases = []testCase{
	{"a waiter is told its place and what remains", queues, waitingReply},
	{"a request repeated takes one place", queues, onePlace},
	{"a place in the queue of another key of the lane counts", queues, placeOfAnotherKey},
	{"nobody passes a queue, even if the key is free", queues, noBarging},
	{"a requeued holder goes to the tail", queues, requeueAtTail},
	{"a requeued holder with nobody waiting is granted at once", queues, requeueAlone},
	{"a release with requeue can be repeated", queues, requeueRepeated},
	{"a key kept back makes the requeued wait, too", queues, requeueKeptBack},
	{"a full queue refuses newcomers and no one else", queues, fullQueue},
	{"one request can pass over the limit of another", queues, limitsAreTheRequests},
	{"a release with requeue into a full queue still releases", queues, requeueIntoFullQueue},
}

func waitingReply(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	first, second := b.wait(w.request()), c.wait(w.request())
	for i, q := range []*waiter{first, second} {
		if q.reply.Rank != i {
			w.Errorf("Rank: got %d, want %d", q.reply.Rank, i)
		}
		if q.reply.Ticket == 0 {
			w.Error("Ticket: got 0, want one")
		}
		w.wantRemains("Remaining", q.reply.Remaining, medium, long)
		// A store that does not know says nothing.
		if got := q.reply.Holder; got != "" && got != h.req.Description {
			w.Errorf("Holder: got %q, want %q or nothing", got, h.req.Description)
		}
		if got := q.reply.HolderToken; got != 0 && got != h.Token {
			w.Errorf("HolderToken: got %d, want %d or 0", got, h.Token)
		}
		if got := q.reply.Mark; got != 0 && got < h.Token {
			w.Errorf("Mark: got %d, want at least the token of the holder, %d, or 0", got, h.Token)
		}
	}
	if first.reply.Ticket >= second.reply.Ticket {
		w.Errorf("tickets: got %d and then %d, want them rising", first.reply.Ticket, second.reply.Ticket)
	}
	if got := a.acquire(w.try()).Waiters; got != 2 {
		w.Errorf("Waiters of a Held reply: got %d, want 2", got)
	}
}

func onePlace(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	a.hold(w.request())
	r := w.request()
	first := b.wait(r)
	c.wait(w.request())
	again := b.wait(r) // without the ticket: the reply that had it was lost
	if again.reply.Ticket != first.reply.Ticket || again.reply.Rank != 0 {
		w.Errorf("repeated request: got ticket %d and rank %d, want %d and 0", again.reply.Ticket, again.reply.Rank, first.reply.Ticket)
	}
	again.heartbeat()
	if again.reply.Ticket != first.reply.Ticket || again.reply.Rank != 0 {
		w.Errorf("heartbeat: got ticket %d and rank %d, want %d and 0", again.reply.Ticket, again.reply.Rank, first.reply.Ticket)
	}
	if got := b.inspect(w.key).Waiters; got != 2 {
		w.Errorf("Waiters: got %d, want 2", got)
	}
}

func placeOfAnotherKey(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	of := w.request()
	of.Key = w.batchKeys(a.session, 1)[0]
	other := a.hold(of)
	h := a.hold(w.request())
	of.Owner = w.request().Owner
	elsewhere := b.wait(of)
	waits := c.wait(w.request())
	brings := w.request()
	brings.Ticket = elsewhere.reply.Ticket
	first := b.wait(brings)
	if w.sessions() { // the place is the server's, and not to be chosen
		return
	}
	if first.reply.Rank != 0 {
		w.Errorf("Rank of who has waited longer for another key: got %d, want 0", first.reply.Rank)
	}
	h.release()
	first.granted().release()
	waits.granted().release()
	other.release()
	elsewhere.granted().release()
}

func noBarging(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	q, end := w.waitBehind(a, b, w.request())
	end.isOver() // and q has not repeated its request
	w.wantStatus("Acquire without Wait of a free key with a queue", c.acquire(w.try()), store.Held)
	late := c.acquire(w.request())
	w.wantStatus("Acquire of a free key with a queue", late, store.Waiting)
	w.wantHeldBy(c, q.poll().req)
}

func requeueAtTail(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	second, third := b.wait(w.request()), c.wait(w.request())
	back := w.request()
	reply := a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, Requeue: &back})
	if !reply.WasHeld || reply.Requeue == nil {
		w.Fatalf("Release with Requeue: got %+v, want WasHeld and an answer to Requeue", reply)
	}
	w.wantStatus("Requeue", *reply.Requeue, store.Waiting)
	if reply.Requeue.Rank != 1 {
		w.Errorf("Rank of the requeued: got %d, want 1, behind the third", reply.Requeue.Rank)
	}
	if reply.Requeue.Ticket <= third.reply.Ticket {
		w.Errorf("Ticket of the requeued: got %d, want more than %d", reply.Requeue.Ticket, third.reply.Ticket)
	}
	back.Ticket = reply.Requeue.Ticket
	last := &waiter{c: a, req: back, reply: *reply.Requeue}
	second.granted().release()
	third.granted().release()
	last.granted().release()
}

func requeueAlone(w *world) {
	a := w.join()
	h := a.hold(w.request())
	back := w.request()
	back.GrantTTL = medium
	used := h.lastToken()
	reply := a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, Requeue: &back})
	if reply.Requeue == nil {
		w.Fatal("Requeue: got no answer, want one")
	}
	w.wantStatus("Requeue with nobody waiting", *reply.Requeue, store.Granted)
	if got := reply.Requeue.Token; w.store.Features().Tokens && got <= used {
		w.Errorf("token of the requeued: got %d, want more than %d", got, used)
	}
	w.wantHeldBy(a, back)
	w.wantRemains("Remaining of a grant by reply", a.inspect(w.key).Remaining, medium, long)
	holding{a, back, reply.Requeue.Grant, time.Now()}.release()
}

func requeueRepeated(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	b.wait(w.request())
	back := w.request()
	r := store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, Requeue: &back}
	first, again := a.release(r), a.release(r)
	if first.Requeue == nil || again.Requeue == nil {
		w.Fatal("Requeue: got no answer, want one each time")
	}
	if again.WasHeld {
		w.Error("repeated Release: got WasHeld true, want false")
	}
	if again.Requeue.Status != store.Waiting || again.Requeue.Ticket != first.Requeue.Ticket {
		w.Errorf("repeated Requeue: got status %d and ticket %d, want Waiting with the same ticket %d",
			again.Requeue.Status, again.Requeue.Ticket, first.Requeue.Ticket)
	}
	if got := b.inspect(w.key).Waiters; got != 1 {
		w.Errorf("Waiters: got %d, want 1, the requeued", got)
	}
}

func requeueKeptBack(w *world) {
	a := w.join()
	h := a.hold(w.request())
	back := w.request()
	reply := a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, HoldBack: short, Requeue: &back})
	if reply.Requeue == nil {
		w.Fatal("Requeue: got no answer, want one")
	}
	w.wantStatus("Requeue of a key kept back", *reply.Requeue, store.Waiting)
	back.Ticket = reply.Requeue.Ticket
	(&waiter{c: a, req: back, reply: *reply.Requeue}).poll().release()
}

func fullQueue(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	r := w.request()
	r.QueueLimit = 1
	q := b.wait(r)
	over := w.request()
	over.QueueLimit = 1
	w.wantStatus("Acquire over the queue's limit", c.acquire(over), store.Full)
	q.heartbeat() // a queued waiter is not refused
	if got := c.inspect(w.key).Waiters; got != 1 {
		w.Errorf("Waiters after a refusal: got %d, want 1", got)
	}
	h.release()
	second := q.granted()
	// There is room again.
	third := c.wait(over)
	second.release()
	third.granted().release()
}

func limitsAreTheRequests(w *world) {
	a, b, c, d := w.join(), w.join(), w.join(), w.join()
	a.hold(w.request())
	r := w.request()
	r.QueueLimit = 1
	b.wait(r)
	r = w.request()
	r.QueueLimit = 2
	c.wait(r)
	d.wait(w.request()) // no limit
}

func requeueIntoFullQueue(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	q := b.wait(w.request())
	back := w.request()
	back.QueueLimit = 1
	reply := a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, Requeue: &back})
	if !reply.WasHeld || reply.Requeue == nil {
		w.Fatalf("Release with Requeue: got %+v, want WasHeld and an answer to Requeue", reply)
	}
	// The queue is counted before or after its head has left, because both happen in one step.
	if s := reply.Requeue.Status; s != store.Full && s != store.Waiting {
		w.Errorf("Requeue: got status %d, want Full or Waiting", s)
	}
	q.granted()
}
