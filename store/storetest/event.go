// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var eventCases = []testCase{
	{"a holder that asked is told when someone queues", messages, contended},
	{"a holder can ask by its renewal to be told when someone queues", messages, contendedAfterRenewal},
	{"a waiter can ask to be told when it holds and someone queues", messages, contendedAfterHandoff},
	{"a holder is told when the key is taken by force", messages, forced},
	{"the first waiter is told when the key is kept back, and for how long", messagesOfTTLs, keptBackWakes},
	{"the next waiter is told when the first one leaves a key that is kept back", messagesOfTTLs, keptBackWakesNext},
}

// hearing connects a client. It waits until the client can rely on the store's messages about the
// case's key, which the replies to a waiter say. A store may need a moment for each client and each
// part of its keys.
func (w *world) hearing() *client {
	w.Helper()
	c, other := w.join(), w.join()
	h, q := other.hold(w.request()), c.wait(w.request())
	for end := time.Now().Add(patience); q.reply.Recheck > 0 && time.Now().Before(end); {
		time.Sleep(pause)
		q.heartbeat()
	}
	if q.reply.Recheck > 0 {
		w.Fatalf("Recheck: got %v for %v, want 0: messages to count on", q.reply.Recheck, patience)
	}
	c.release(store.ReleaseRequest{Key: w.key, Owner: q.req.Owner})
	h.release()
	return c
}

func contended(w *world) {
	a, b := w.hearing(), w.join()
	r := w.request()
	r.NotifyQueued = true
	a.hold(r)
	b.wait(w.request())
	a.await(store.EventQueued, r.Owner)
}

func contendedAfterRenewal(w *world) {
	a, b := w.hearing(), w.join()
	h := a.hold(w.request())
	err := a.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: h.Token, NotifyQueued: true}).Err
	if err != nil {
		w.Fatalf("Renew: got %v, want no error", err)
	}
	b.wait(w.request())
	a.await(store.EventQueued, h.req.Owner)
}

func contendedAfterHandoff(w *world) {
	a, b, c := w.join(), w.hearing(), w.join()
	h := a.hold(w.request())
	r := w.request()
	r.NotifyQueued = true
	q := b.wait(r)
	h.release()
	q.granted()
	c.wait(w.request())
	b.await(store.EventQueued, r.Owner)
}

func forced(w *world) {
	a, b := w.hearing(), w.join()
	h := a.hold(w.request())
	b.force(w.key)
	a.awaitForced(h.req.Owner)
	err := a.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: h.Token}).Err
	if !errors.Is(err, store.ErrLost) {
		w.Errorf("Renew by the holder that was forced out: got %v, want ErrExpired", err)
	}
}

// keptBackWakes: a holding can end earlier than its TTL, and the first waiter sleeps by that.
func keptBackWakes(w *world) {
	a, dying, b, c := w.join(), w.join(), w.hearing(), w.hearing()
	h := a.hold(w.request())
	r := w.request()
	r.WaiterTTL = short
	dying.wait(r)
	q, behind := b.wait(w.request()), c.wait(w.request())
	expired()
	a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, HoldBack: medium})
	q.wakesFirst()
	if _, told := c.find(store.EventWake, behind.req.Owner); told {
		w.Error("got an EventWake for the second waiter, want it for the first only")
	}
}

func keptBackWakesNext(w *world) {
	a, b, c := w.join(), w.hearing(), w.hearing()
	h := a.hold(w.request())
	first, second := b.wait(w.request()), c.wait(w.request())
	a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, HoldBack: medium})
	b.await(store.EventWake, first.req.Owner)
	b.release(store.ReleaseRequest{Key: w.key, Owner: first.req.Owner})
	second.wakesFirst()
}

// wakesFirst waits until q is told to ask again, and asks. It is then the first, and knows for how long
// the key is kept back.
func (q *waiter) wakesFirst() {
	w := q.c.w
	w.Helper()
	q.c.await(store.EventWake, q.req.Owner)
	q.heartbeat()
	if q.reply.Rank != 0 || q.reply.Remaining < 0 || q.reply.Remaining > medium {
		w.Errorf("the first waiter of a key kept back for %v: got rank %d and %v remaining, want 0 and at most that", medium, q.reply.Rank, q.reply.Remaining)
	}
}
