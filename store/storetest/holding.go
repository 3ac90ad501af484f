// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var holdingCases = []testCase{
	{"a free key is granted and a release frees it", anyStore, grantAndRelease},
	{"acquire sent again gives the same grant and sets the TTL", anyStore, acquireAgain},
	{"a held key is refused to one who does not wait", anyStore, heldWithoutWait},
	{"a waiter gets the key after the release", anyStore, waiterGetsKey},
	{"an expired holding lets the next in by its own poll", anyStore, expiryLetsNextIn},
	{"a release repeated finds nothing held", anyStore, releaseRepeated},
	{"a release by a stranger does nothing", anyStore, releaseByStranger},
	{"a late release leaves the successor alone", anyStore, lateRelease},
	{"a release that finds nothing held says who has the key", endsByTTL, releaseSaysWhy},
	{"a key kept back goes to nobody", anyStore, keptBack},
	{"a key kept back goes to the next when the time is over", anyStore, keptBackEnds},
	{"force takes the key from its holder", anyStore, forceTakes},
}

func grantAndRelease(w *world) {
	a, b := w.join(), w.join()
	first := a.hold(w.try())
	if !w.store.Features().Tokens && first.Grant != (store.Grant{}) {
		w.Errorf("grant of a store without tokens: got %+v, want none", first.Grant)
	}
	w.wantHeldBy(b, first.req)
	first.release()
	w.wantFree(b, w.key)
	second := b.hold(w.request())
	w.wantHeldBy(a, second.req)
}

func acquireAgain(w *world) {
	a := w.join()
	r := w.request()
	r.TTL = medium
	first := a.hold(r)
	r.TTL = long
	again := a.hold(r)
	if again.Grant != first.Grant {
		w.Errorf("grant of the repeated request: got %+v, want the same as before, %+v", again.Grant, first.Grant)
	}
	w.wantRemains("Remaining after the repeated request", a.inspect(w.key).Remaining, medium, long)
	w.wantSetTTL(a, func(r store.AcquireRequest) error {
		r.TTL = long
		return a.acquire(r).Err
	})
}

// wantSetTTL checks that a holding with a TTL of short lasts longer if the client extends it. If
// the machine is too busy for that, the TTL is doubled.
func (w *world) wantSetTTL(c *client, extend func(store.AcquireRequest) error) {
	w.Helper()
	for ttl := short; ttl < patience; ttl *= 2 {
		r := w.request()
		r.Key += "/extended"
		r.TTL = ttl
		start := time.Now()
		h := c.hold(r)
		err := extend(r)
		if time.Since(start) >= ttl-slack { // it may have been late
			c.force(r.Key)
			continue
		}
		if err != nil {
			w.Errorf("extending a holding of %v: got %v, want no error", ttl, err)
		}
		time.Sleep(ttl + short/2)
		w.wantHeldBy(c, r)
		h.release()
		return
	}
	w.Fatalf("no holding of up to %v could be extended in time", patience)
}

func heldWithoutWait(w *world) {
	a, b := w.join(), w.join()
	first := a.hold(w.request())
	reply := b.acquire(w.try())
	w.wantStatus("Acquire of a held key without Wait", reply, store.Held)
	if reply.Holder != "" && reply.Holder != first.req.Description {
		w.Errorf("Holder: got %q, want %q", reply.Holder, first.req.Description)
	}
	if reply.HolderToken != 0 && reply.HolderToken != first.Token {
		w.Errorf("Token: got %d, want the holder's, %d", reply.HolderToken, first.Token)
	}
	w.wantRemaining(reply.Remaining)
	if n := b.inspect(w.key).Waiters; n != 0 {
		w.Errorf("Waiters after an Acquire without Wait: got %d, want 0", n)
	}
	first.release()
	b.hold(w.try())
}

// wantRemaining checks what a reply says about a recent holding with a TTL of long.
func (w *world) wantRemaining(got time.Duration) {
	w.Helper()
	if got == 0 || got > long {
		w.Errorf("Remaining: got %v, want more than 0 and at most %v, or negative if unknown", got, long)
	}
}

func waiterGetsKey(w *world) {
	a, b := w.join(), w.join()
	first := a.hold(w.request())
	q := b.wait(w.request())
	w.wantRemaining(q.reply.Remaining)
	w.wantHeldBy(b, first.req)
	first.release()
	second := q.poll()
	w.wantHeldBy(a, second.req)
	w.wantStatus("Acquire by another", a.acquire(w.try()), store.Held)
	second.release()
	w.wantFree(a, w.key)
}

func expiryLetsNextIn(w *world) {
	a, b := w.join(), w.join()
	r := w.request()
	r.TTL = short
	start := time.Now()
	a.hold(r)
	r = w.request()
	r.GrantTTL = medium
	second := b.next(r)
	if got := time.Since(start); got < short-slack {
		w.Errorf("the next was granted after %v, want not before the TTL of %v", got, short)
	}
	w.wantRemains("Remaining of a grant by reply", b.inspect(w.key).Remaining, medium, long)
	w.wantHeldBy(a, second.req)
}

func releaseRepeated(w *world) {
	a := w.join()
	h := a.hold(w.request())
	h.release()
	reply := a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token})
	if reply.WasHeld {
		w.Error("second Release: got WasHeld true, want false")
	}
	w.wantFree(a, w.key)
}

func releaseByStranger(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	reply := b.release(store.ReleaseRequest{Key: w.key, Owner: newOwner(), Token: h.Token})
	if reply.WasHeld {
		w.Error("Release by a stranger: got WasHeld true, want false")
	}
	w.wantHeldBy(b, h.req)
	// The same with strangers being remembered.
	reply = b.release(store.ReleaseRequest{Key: w.key, Owner: newOwner(), Uncertain: true})
	if reply.WasHeld {
		w.Error("uncertain Release by a stranger: got WasHeld true, want false")
	}
	h.release()
}

func lateRelease(w *world) {
	a, b := w.join(), w.join()
	r := w.request()
	r.TTL = short
	first := a.hold(r)
	expired()
	second := b.hold(w.request())
	reply := a.release(store.ReleaseRequest{Key: w.key, Owner: r.Owner, Token: first.Token})
	if reply.WasHeld {
		w.Error("Release after expiry: got WasHeld true, want false")
	}
	w.wantHeldBy(a, second.req)
	second.release()
}

func releaseSaysWhy(w *world) {
	a, b := w.join(), w.join()
	late := store.ReleaseRequest{Key: w.key, Owner: newOwner(), Token: 1}
	wantCause := func(when string, want error) {
		w.Helper()
		for _, late.Uncertain = range []bool{false, true} {
			if got := a.release(late); got.WasHeld || !errors.Is(got.Cause, want) {
				w.Errorf("Release %s: got WasHeld %v and Cause %v, want the cause %v", when, got.WasHeld, got.Cause, want)
			}
		}
	}
	wantCause("of a key that was never held", store.ErrExpired)
	h := b.hold(w.request())
	wantCause("of another's key", store.ErrStolen)
	b.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, HoldBack: long})
	wantCause("of a key that is kept back", store.ErrExpired)
	b.force(w.key)
	r := w.request()
	r.TTL = short
	b.hold(r)
	expired()
	wantCause("of a key whose holding has expired", store.ErrExpired)
}

func keptBack(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	q := b.wait(w.request())
	reply := a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, HoldBack: long})
	if !reply.WasHeld {
		w.Error("Release with Keep: got WasHeld false, want true")
	}
	q.heartbeat()
	if q.reply.Remaining == 0 || q.reply.Remaining > long {
		w.Errorf("Remaining while kept back: got %v, want at most %v", q.reply.Remaining, long)
	}
	w.wantStatus("Acquire without Wait while kept back", b.acquire(w.try()), store.Held)
	// The owner has ended its holding, and nobody has the key yet.
	if err := a.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long}).Err; !errors.Is(err, store.ErrExpired) {
		w.Errorf("Renew by the owner who released: got %v, want ErrExpired", err)
	}
	if a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner}).WasHeld {
		w.Error("second Release while kept back: got WasHeld true, want false")
	}
	w.wantStatus("Acquire without Wait after a second Release", b.acquire(w.try()), store.Held)
}

func keptBackEnds(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	q := b.wait(w.request())
	start, used := time.Now(), h.lastToken()
	a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, HoldBack: short})
	second := q.poll()
	if got := time.Since(start); got < short-slack {
		w.Errorf("a key kept back for %v was granted after %v", short, got)
	}
	if w.store.Features().Tokens && second.Token <= used {
		w.Errorf("token after Keep: got %d, want more than %d", second.Token, used)
	}
}

func forceTakes(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	if !b.force(w.key) {
		w.Error("Force of a held key: got false, want true")
	}
	w.wantFree(b, w.key)
	if b.force(w.key) {
		w.Error("Force of a free key: got true, want false")
	}
	b.hold(w.request())
	if a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token}).WasHeld {
		w.Error("Release by the holder that was forced out: got WasHeld true, want false")
	}
}
