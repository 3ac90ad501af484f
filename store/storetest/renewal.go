// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"

	"github.com/asynclock/asynclock-go/store"
)

var renewalCases = []testCase{
	{"a renewal extends the holding", anyStore, renewExtends},
	{"a renewal never shortens the holding", anyStore, renewNeverShortens},
	{"a renewal by a stranger is told that the key is stolen", anyStore, renewByStranger},
	{"a renewal after expiry is told so and brings nothing back", anyStore, renewAfterExpiry},
	{"a renewal after the release brings nothing back", anyStore, renewAfterRelease},
	{"a renewal says how many wait", queues, renewCountsWaiters},
}

func renewExtends(w *world) {
	a := w.join()
	r := w.request()
	r.TTL = medium
	h := a.hold(r)
	reply := a.renew(store.RenewRequest{Key: w.key, Owner: r.Owner, TTL: long, Token: h.Token})
	if reply.Err != nil {
		w.Errorf("Renew by the holder: got %v, want no error", reply.Err)
	}
	w.wantRemains("Remaining after a renewal", a.inspect(w.key).Remaining, medium, long)
	h.release()
	w.wantSetTTL(a, func(r store.AcquireRequest) error {
		return a.renew(store.RenewRequest{Key: r.Key, Owner: r.Owner, TTL: long}).Err
	})
}

func renewNeverShortens(w *world) {
	a := w.join()
	h := a.hold(w.request())
	reply := a.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: short, Token: h.Token})
	if reply.Err != nil {
		w.Errorf("Renew for less than what remains: got %v, want no error", reply.Err)
	}
	w.wantRemains("Remaining after a renewal to less", a.inspect(w.key).Remaining, short, long)
	expired()
	w.wantHeldBy(a, h.req)
}

func renewByStranger(w *world) {
	a, b := w.join(), w.join()
	r := w.request()
	r.TTL = medium
	h := a.hold(r)
	reply := b.renew(store.RenewRequest{Key: w.key, Owner: newOwner(), TTL: long})
	if !errors.Is(reply.Err, store.ErrStolen) {
		w.Errorf("Renew by a stranger: got %v, want ErrStolen", reply.Err)
	}
	if got := b.inspect(w.key).Remaining; got > medium {
		w.Errorf("Remaining after a stranger's renewal: got %v, want at most %v", got, medium)
	}
	w.wantHeldBy(b, h.req)
}

func renewAfterExpiry(w *world) {
	a, b := w.join(), w.join()
	r := w.request()
	r.TTL = short
	h := a.hold(r)
	expired()
	late := store.RenewRequest{Key: w.key, Owner: r.Owner, TTL: long, Token: h.Token}
	if err := a.renew(late).Err; !errors.Is(err, store.ErrExpired) {
		w.Errorf("Renew after expiry: got %v, want ErrExpired", err)
	}
	w.wantFree(b, w.key)
	second := b.hold(w.request())
	if err := a.renew(late).Err; !errors.Is(err, store.ErrStolen) {
		w.Errorf("Renew when another holds the key: got %v, want ErrStolen", err)
	}
	w.wantHeldBy(a, second.req)
}

func renewAfterRelease(w *world) {
	a := w.join()
	h := a.hold(w.request())
	h.release()
	err := a.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: h.Token}).Err
	if !errors.Is(err, store.ErrExpired) {
		w.Errorf("Renew after the release: got %v, want ErrExpired", err)
	}
	w.wantFree(a, w.key)
}

func renewCountsWaiters(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	r := store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: h.Token}
	if got := a.renew(r).Waiters; got != 0 {
		w.Errorf("Waiters: got %d, want 0", got)
	}
	b.wait(w.request())
	var got int
	w.catchUp(func() bool { got = a.renew(r).Waiters; return got == 1 })
	if got != 1 {
		w.Errorf("Waiters with one queued: got %d, want 1", got)
	}
	if got := a.acquire(h.req).Waiters; got != 1 {
		w.Errorf("Waiters of a repeated Acquire with one queued: got %d, want 1", got)
	}
}
