// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"

	"github.com/asynclock/asynclock-go/store"
)

var permitCases = []testCase{
	{"permits are held together up to their limit", permits, permitsTogether},
	{"a reply to who gets no permits says how many are out", permits, permitsInReplies},
	{"a large request for permits is not passed by smaller ones", permits, largeBlocksSmall},
	{"a large request for permits that leaves lets the others in", permits, largeLeaves},
	{"a request for more permits than before keeps its place", permits, moreInPlace},
	{"more permits than needed are granted if nobody waits", permits, extraPermits},
	{"permits can be given back in parts", permits, permitsInParts},
	{"a part that is said again or late raises nothing", permits, partsOutOfOrder},
	{"the smallest limit of the holders counts", permits, smallestLimit},
	{"a renewal lowers permits and raises none", permits, renewalLowers},
	{"who takes the whole key waits for all permits", permits, lockDrains},
	{"permits and readers exclude each other", permitsAndShares, permitsExcludeReaders},
	{"permits that are given up can be held back", permits, partHeldBack},
	{"a renewal with the weight from before a part was held back changes nothing", permits, renewalOfHeldBack},
	{"the first waiter is told when permits are held back", permitsAndMessages, partHeldBackWakes},
	{"a waiter behind one that died is granted permits once", permits, permitsBehindTheDead},
	{"a holder of permits that dies gives them back", permits, permitsExpire},
	{"a repeated request for permits finds what it has", permits, permitsRepeat},
	{"requests for permits that make no sense are refused", permits, senselessPermits},
	{"a store without permits refuses them and changes nothing", noPermits, permitsRefused},
}

// permits is request for some permits of a limit.
func (w *world) permits(weight, limit int32) store.AcquireRequest {
	r := w.request()
	r.Share = store.Share{Mode: store.Permits, Weight: weight, Limit: limit}
	return r
}

// rest keeps so many of a holder's permits.
func (h holding) rest(weight int32) store.ReleaseReply {
	h.c.w.Helper()
	share := h.req.Share
	share.Weight = weight
	return h.c.release(store.ReleaseRequest{Key: h.req.Key, Owner: h.req.Owner, Token: h.Token, Rest: &share})
}

// wantUsed checks how many permits are out.
func (w *world) wantUsed(c *client, used, limit int) {
	w.Helper()
	if info := c.inspect(w.key); info.Held != (used > 0) || info.Mode != store.Permits || info.Used != used || info.Limit != limit {
		w.Errorf("Inspect: got %d of %d permits in mode %d, held %v, want %d of %d", info.Used, info.Limit, info.Mode, info.Held, used, limit)
	}
}

func permitsTogether(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	first, second := a.hold(w.permits(2, 3)), b.hold(w.permits(1, 3))
	if first.Weight != 2 || second.Weight != 1 || second.Token <= first.Token {
		w.Errorf("grants: got %+v and %+v, want weights 2 and 1 and rising tokens", first.Grant, second.Grant)
	}
	w.wantUsed(a, 3, 3)
	try := w.permits(1, 3)
	try.Wait = false
	w.wantStatus("a try with no permit left", c.acquire(try), store.Held)
	third := c.wait(w.permits(1, 3))
	second.release()
	third.granted().release()
	first.release()
	w.wantFree(a, w.key)
}

func permitsInReplies(w *world) {
	a, b := w.join(), w.join()
	try := w.permits(2, 3)
	try.Wait = false
	want := func(what string, r store.AcquireRequest, want int) {
		w.Helper()
		if reply := b.acquire(r); reply.Status != store.Held && reply.Status != store.Waiting || reply.Used != want {
			w.Errorf("the reply to %s: got status %d and %d permits out, want no grant and %d", what, reply.Status, reply.Used, want)
		}
	}
	first := a.hold(w.permits(1, 3))
	second := a.hold(w.permits(1, 3))
	want("a try", try, 2)
	large := w.permits(2, 3)
	want("a request that waits", large, 2)
	b.release(store.ReleaseRequest{Key: w.key, Owner: large.Owner})
	whole := w.request()
	whole.Wait = false
	want("a try for all of the key", whole, 0)
	first.release()
	second.release()
	a.hold(w.request())
	want("a try while somebody has all of the key", try, 0)
}

func largeBlocksSmall(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	first := a.hold(w.permits(2, 3))
	large := b.wait(w.permits(2, 3))
	try := w.permits(1, 3)
	try.Wait = false
	w.wantStatus("a try behind a large request", c.acquire(try), store.Held)
	small := c.wait(w.permits(1, 3))
	first.release()
	large.granted()
	small.granted()
	w.wantUsed(a, 3, 3)
}

func largeLeaves(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	a.hold(w.permits(2, 3))
	large, small := b.wait(w.permits(2, 3)), c.wait(w.permits(1, 3))
	b.release(store.ReleaseRequest{Key: w.key, Owner: large.req.Owner})
	small.granted()
	w.wantUsed(a, 3, 3)
}

func moreInPlace(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	all := a.hold(w.permits(3, 3))
	first, second := b.wait(w.permits(1, 3)), c.wait(w.permits(2, 3))
	first.req.Share.Weight = 2
	first.heartbeat()
	all.release()
	h := first.granted()
	if h.Weight != 2 {
		w.Errorf("Weight: got %d, want 2, as in the last request", h.Weight)
	}
	w.wantUsed(a, 2, 3)
	h.release()
	second.granted()
}

func extraPermits(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	more := func(weight, extra int32) store.AcquireRequest {
		r := w.permits(weight, 5)
		r.Extra = extra
		return r
	}
	first := a.hold(more(1, 2))
	if first.Weight != 3 {
		w.Errorf("Weight with two more: got %d, want 3", first.Weight)
	}
	second, third := b.wait(more(3, 1)), c.wait(more(1, 9))
	first.release()
	if got := second.granted().Weight; got != 3 {
		w.Errorf("Weight of who has somebody behind: got %d, want 3", got)
	}
	if got := third.granted().Weight; got != 2 {
		w.Errorf("Weight of who has nobody behind, with 2 permits left: got %d, want 2", got)
	}
	w.wantUsed(a, 5, 5)
}

func permitsInParts(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.permits(3, 3))
	q := b.wait(w.permits(2, 3))
	if !h.rest(2).WasHeld {
		w.Error("Release of a part: got WasHeld false, want true")
	}
	q.heartbeat()
	if again := a.acquire(h.req); again.Status != store.Granted || again.Weight != 2 {
		w.Errorf("a repeated request after a part was given back: got %+v, want it Granted with Weight 2", again)
	}
	h.rest(1)
	q.granted()
	w.wantUsed(a, 3, 3)
	h.release()
	w.wantUsed(a, 2, 3)
}

func partsOutOfOrder(w *world) {
	a := w.join()
	h := a.hold(w.permits(5, 5))
	for _, part := range []struct{ weight, used int32 }{{3, 3}, {4, 3}, {3, 3}, {1, 1}, {5, 1}} {
		if !h.rest(part.weight).WasHeld {
			w.Errorf("Release with a Rest of %d: got WasHeld false, want true", part.weight)
		}
		w.wantUsed(a, int(part.used), 5)
	}
	h.release()
	if h.rest(1).WasHeld {
		w.Error("Release of a part of nothing: got WasHeld true, want false")
	}
	w.wantFree(a, w.key)
}

func smallestLimit(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	modest := a.hold(w.permits(1, 2))
	b.hold(w.permits(1, 5))
	w.wantUsed(a, 2, 2)
	q := c.wait(w.permits(1, 5))
	modest.release()
	q.granted()
	w.wantUsed(a, 2, 5)
	r := w.permits(1, 2) // the limit of who asks counts, too
	a.wait(r)
}

func renewalLowers(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.permits(3, 3))
	q := b.wait(w.permits(2, 3))
	for _, weight := range []int32{1, 3} {
		share := h.req.Share
		share.Weight = weight
		reply := a.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: h.Token, Share: share})
		if reply.Err != nil {
			w.Errorf("Renew with a weight of %d: got %v, want no error", weight, reply.Err)
		}
	}
	q.poll() // its own request finds them
	w.wantUsed(a, 3, 3)
}

func lockDrains(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	first := a.hold(w.permits(1, 2))
	all, behind := b.wait(w.request()), c.wait(w.permits(1, 2))
	first.release()
	h := all.granted()
	behind.heartbeat()
	h.release()
	behind.granted()
}

func permitsExcludeReaders(w *world) {
	a, b := w.join(), w.join()
	first := a.hold(w.permits(1, 2))
	reader := b.wait(w.read())
	first.release()
	h := reader.granted()
	q := a.wait(w.permits(1, 2))
	h.release()
	q.granted()
}

func partHeldBack(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.permits(2, 2))
	share := h.req.Share
	share.Weight = 1
	a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, Rest: &share, HoldBack: long})
	w.wantUsed(a, 2, 2)
	q := b.wait(w.permits(1, 2))
	h.release()
	q.granted()
	w.wantUsed(a, 2, 2)
	if err := a.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: h.Token, Share: share}).Err; !errors.Is(err, store.ErrLost) {
		w.Errorf("Renew of what is held back: got %v, want ErrLost", err)
	}
}

// A client renews with the weight from before its Rest until that is answered. So the renewal may come
// before the Rest or after it.
func renewalOfHeldBack(w *world) {
	a := w.join()
	h := a.hold(w.permits(3, 3))
	share := h.req.Share
	share.Weight = 1
	rest := store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, Rest: &share, HoldBack: long}
	renewal := store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: h.Token, Share: h.req.Share}
	for _, what := range []string{"before", "after"} {
		if err := a.renew(renewal).Err; err != nil {
			w.Errorf("Renew %s the Rest: got %v, want no error", what, err)
		}
		a.release(rest)
		w.wantUsed(a, 3, 3)
	}
	if again := a.acquire(h.req); again.Weight != 1 {
		w.Errorf("Weight after the Rest: got %d, want 1", again.Weight)
	}
	h.release()
	w.wantUsed(a, 2, 3)
}

func partHeldBackWakes(w *world) {
	a, b := w.hearing(), w.hearing()
	h := a.hold(w.permits(2, 2))
	q := b.wait(w.permits(1, 2))
	share := h.req.Share
	share.Weight = 1
	a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, Rest: &share, HoldBack: medium})
	b.await(store.EventWake, q.req.Owner)
	q.heartbeat()
	w.wantRemains("Remaining for who waits for what is held back", q.reply.Remaining, 0, medium)
}

func permitsBehindTheDead(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	a.hold(w.permits(1, 2))
	dies := w.permits(2, 2)
	dies.WaiterTTL = short
	b.wait(dies)
	lives := w.permits(1, 2)
	lives.GrantTTL = medium
	w.wantServedOnce(c, lives)
	w.wantUsed(a, 2, 2)
}

// wantServedOnce checks that a waiter whose way becomes free, because the one before it dies, has the
// key once, for the TTL of its request.
func (w *world) wantServedOnce(c *client, r store.AcquireRequest) {
	w.Helper()
	c.acquire(r) // usually it waits; on a busy machine the other one may be dead already
	expired()
	h := c.next(r)
	info := c.inspect(w.key)
	if info.Waiters != 0 || len(info.Holders) != 2 {
		w.Errorf("Inspect: got %d waiters and holders %+v, want none and two", info.Waiters, info.Holders)
	}
	for _, holder := range info.Holders {
		if holder.Token == h.Token || holder.Token == h.Fence {
			w.wantRemains("Remaining of a holder", holder.Remaining, medium, long)
		}
	}
}

func permitsExpire(w *world) {
	a, b := w.join(), w.join()
	dies := w.permits(2, 3)
	dies.TTL = short
	a.hold(dies)
	lives := b.hold(w.permits(1, 3))
	b.next(w.permits(2, 3))
	w.wantUsed(a, 3, 3)
	lives.release()
}

func permitsRepeat(w *world) {
	a := w.join()
	r := w.permits(1, 4)
	r.Extra = 1
	h := a.hold(r)
	again := a.acquire(r)
	w.wantStatus("the request of a holder of permits, repeated", again, store.Granted)
	if again.Weight != h.Weight || again.Token != h.Token {
		w.Errorf("Grant: got %+v, want %+v as before", again.Grant, h.Grant)
	}
	w.wantUsed(a, 2, 4)
}

func senselessPermits(w *world) {
	a := w.join()
	ctx, cancel := a.call()
	defer cancel()
	for _, share := range []store.Share{
		{Mode: store.Permits},
		{Mode: store.Permits, Weight: -1, Limit: 2},
		{Mode: store.Permits, Weight: 3, Limit: 2},
		{Mode: store.Permits, Weight: 1, Limit: store.MaxPermits + 1},
		{Weight: 1, Limit: 1},
		{Mode: store.Permits + 1},
	} {
		r := w.try()
		r.Share = share
		if reply := a.session.Acquire(ctx, []store.AcquireRequest{r})[0]; !errors.Is(reply.Err, store.ErrInvalidOption) {
			w.Errorf("Acquire of %+v: got status %d, error %v; want ErrInvalidOption", share, reply.Status, reply.Err)
		}
	}
	w.wantFree(a, w.key)
	h := a.hold(w.permits(1, 2))
	whole, none, same := store.Share{}, store.Share{Mode: store.Permits, Limit: 2}, h.req.Share
	again := w.permits(1, 2)
	for what, r := range map[string]store.ReleaseRequest{
		"a rest of all":            {Rest: &whole},
		"a rest of nothing":        {Rest: &none},
		"a rest that queues again": {Rest: &same, Requeue: &again},
		"a rest of a withdrawal":   {Rest: &same, Uncertain: true},
		"a rest above its limit":   {Rest: &store.Share{Mode: store.Permits, Weight: 3, Limit: 2}},
	} {
		r.Key, r.Owner, r.Token = w.key, h.req.Owner, h.Token
		if reply := a.session.Release(ctx, []store.ReleaseRequest{r})[0]; !errors.Is(reply.Err, store.ErrInvalidOption) {
			w.Errorf("Release with %s: got WasHeld %v, error %v; want ErrInvalidOption", what, reply.WasHeld, reply.Err)
		}
	}
	w.wantUsed(a, 1, 2)
}

func permitsRefused(w *world) {
	w.wantUnsupported(w.permits(1, 2), store.Share{Mode: store.Permits, Weight: 1, Limit: 2})
}
