// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

var eventCases = []testCase{
	{"a holder that asked is told when someone queues", queues, contended},
	{"a holder can ask by its renewal to be told when someone queues", queues, contendedAfterRenewal},
	{"a waiter can ask to be told when it holds and someone queues", queues, contendedAfterHandoff},
	{"a holder is told when the key is taken by force", queues, forced},
}

// withMessages waits until the store's messages can be counted on, which the
// replies to a waiter say. A store may need a moment for that.
func (w *world) withMessages() {
	w.Helper()
	if w.silent {
		w.Skip("the suite was told that the store sends no messages")
	}
	c := w.join()
	probe := w.request()
	probe.Key += "/probe"
	c.hold(probe)
	probe.Owner = newOwner()
	q := c.wait(probe)
	for end := time.Now().Add(patience); q.reply.Recheck > 0 && time.Now().Before(end); {
		time.Sleep(pause)
		q.heartbeat()
	}
	if q.reply.Recheck > 0 {
		w.Fatalf("Recheck: got %v for %v, want 0: messages to count on", q.reply.Recheck, patience)
	}
}

func contended(w *world) {
	w.withMessages()
	a, b := w.join(), w.join()
	r := w.request()
	r.WatchContention = true
	a.hold(r)
	b.wait(w.request())
	a.await(asynclock.EventContended, r.Owner)
}

func contendedAfterRenewal(w *world) {
	w.withMessages()
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	err := a.renew(asynclock.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: h.First, WatchContention: true}).Err
	if err != nil {
		w.Fatalf("Renew: got %v, want no error", err)
	}
	b.wait(w.request())
	a.await(asynclock.EventContended, h.req.Owner)
}

func contendedAfterHandoff(w *world) {
	w.withMessages()
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	r := w.request()
	r.WatchContention = true
	q := b.wait(r)
	h.release()
	q.granted()
	c.wait(w.request())
	b.await(asynclock.EventContended, r.Owner)
}

func forced(w *world) {
	w.withMessages()
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	b.force(w.key)
	a.await(asynclock.EventForced, h.req.Owner)
	err := a.renew(asynclock.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: h.First}).Err
	if !errors.Is(err, asynclock.ErrLost) {
		w.Errorf("Renew by the holder that was forced out: got %v, want ErrExpired", err)
	}
}
