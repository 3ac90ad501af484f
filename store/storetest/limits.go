// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"

	"github.com/asynclock/asynclock-go/store"
)

var limitCases = []testCase{
	{"a stored limit counts instead of the others", limits, storedLimitCounts},
	{"a reply says the limit in force", limits, limitInReplies},
	{"a renewal says the limit in force", limits, limitInRenewals},
	{"holders of permits are told of a limit", limitsAndMessages, limitIsTold},
	{"a larger limit lets waiters in", limits, largerLimit},
	{"a larger limit lets any number of waiters in", limits, manyBelowTheLimit},
	{"a smaller limit takes nothing and lets nobody in until enough was given back", limits, smallerLimit},
	{"a limit that is forgotten is everyone's own again", limits, forgottenLimit},
	{"a limit outlives those who hold the key", limits, limitOutlives},
	{"a request above the limit is refused and not queued", limits, aboveTheLimit},
	{"a waiter above the limit leaves, and those behind it are served", limits, waiterAboveTheLimit},
	{"a waiter above the limit is told to ask", limitsAndMessages, waiterAboveTheLimitIsTold},
	{"a waiter above the limit that is not the first leaves when it asks", limits, laterWaiterAboveTheLimit},
	{"a waiter for which the limit was raised again has its place", limits, waiterBelowTheLimitAgain},
	{"any number of waiters leave", limits, manyAboveTheLimit},
	{"more permits than needed are granted up to the limit", limits, extraUpToTheLimit},
	{"a limit concerns holders of permits only", limitsAndShares, limitOfPermitsOnly},
	{"a limit that makes no sense is refused", limits, senselessLimits},
	{"no limit is stored for a context or a session that has ended", limits, limitTooLate},
	{"a store without limits refuses them and changes nothing", noLimits, limitsRefused},
}

// storeLimit asks for a limit of the case's key.
func (c *client) storeLimit(ctx context.Context, limit int32) error {
	c.w.Helper()
	session, ok := c.session.(store.LimitSession)
	if !ok {
		c.w.Fatal("a session of a store with Features.Limits: got no LimitSession, want one")
	}
	return session.SetLimit(ctx, c.w.key, limit)
}

// setLimit stores a limit of the case's key.
func (c *client) setLimit(limit int32) {
	c.w.Helper()
	ctx, cancel := c.call()
	defer cancel()
	if err := c.storeLimit(ctx, limit); err != nil {
		c.w.Fatalf("SetLimit(%d): got error %v, want none", limit, err)
	}
}

// tryPermits is permits without waiting.
func (w *world) tryPermits(weight, limit int32) store.AcquireRequest {
	r := w.permits(weight, limit)
	r.Wait = false
	return r
}

// wantLimit checks the limit in a reply.
func (w *world) wantLimit(what string, reply store.AcquireReply, want int32) {
	w.Helper()
	if reply.Limit != want {
		w.Errorf("Limit of the reply to %s: got %d, want %d", what, reply.Limit, want)
	}
}

// wantTooMuch checks that a request is above the limit.
func (w *world) wantTooMuch(what string, reply store.AcquireReply, limit int32) {
	w.Helper()
	w.wantStatus(what, reply, store.TooMuch)
	w.wantLimit(what, reply, limit)
}

// wantWaiters checks how many wait.
func (w *world) wantWaiters(c *client, want int) {
	w.Helper()
	if got := c.inspect(w.key).Waiters; got != want {
		w.Errorf("Inspect: got %d waiters, want %d", got, want)
	}
}

func storedLimitCounts(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	a.setLimit(3)
	a.hold(w.permits(2, 5))
	b.hold(w.permits(1, 1)) // there are 3 permits, whatever this client believes
	w.wantUsed(a, 3, 3)
	w.wantStatus("a try with no permit of the stored limit left", c.acquire(w.tryPermits(1, 5)), store.Held)
}

func limitInReplies(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	first := w.permits(2, 4)
	w.wantLimit("the first request", a.acquire(first), 4)
	w.wantLimit("a request with a larger limit", b.acquire(w.permits(1, 5)), 4)
	w.wantLimit("a request with a smaller limit", c.acquire(w.tryPermits(1, 3)), 3)
	waits := w.permits(1, 3)
	w.wantLimit("a request that waits", c.acquire(waits), 3)
	a.setLimit(2)
	w.wantLimit("a holder's repeated request", a.acquire(first), 2)
	w.wantLimit("a waiter's repeated request", c.acquire(waits), 2)
	w.wantLimit("a try", b.acquire(w.tryPermits(1, 5)), 2)
	full := w.permits(1, 5)
	full.QueueLimit = 1
	w.wantLimit("a request with the queue full", b.acquire(full), 2)
	w.wantLimit("a request for the whole key", b.acquire(w.request()), 0)
}

func limitInRenewals(w *world) {
	a, b := w.join(), w.join()
	one, other := a.hold(w.permits(1, 5)), b.hold(w.permits(1, 4))
	renewed := func(c *client, h holding) int32 {
		w.Helper()
		reply := c.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: h.Token, Share: h.req.Share})
		if reply.Err != nil {
			w.Fatalf("Renew: got %v, want no error", reply.Err)
		}
		return reply.Limit
	}
	for _, step := range []struct{ stored, want int32 }{{0, 4}, {3, 3}, {1, 1}, {0, 4}} {
		a.setLimit(step.stored)
		if got := [2]int32{renewed(a, one), renewed(b, other)}; got != [2]int32{step.want, step.want} {
			w.Errorf("limits in the replies to renewals with %d stored: got %d, want %d", step.stored, got, step.want)
		}
	}
	other.release()
	if got := renewed(a, one); got != 5 {
		w.Errorf("limit in the reply to a renewal of the only holder: got %d, want 5", got)
	}
}

func limitIsTold(w *world) {
	a, b := w.hearing(), w.hearing()
	one, other := a.hold(w.permits(1, 5)), b.hold(w.permits(1, 5))
	a.setLimit(1)
	a.await(store.EventWake, one.req.Owner)
	b.await(store.EventWake, other.req.Owner)
}

func largerLimit(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	a.setLimit(2)
	a.hold(w.permits(2, 2))
	first, second := b.wait(w.permits(1, 2)), c.wait(w.permits(2, 2))
	third := a.wait(w.permits(1, 2))
	a.setLimit(5)
	first.granted()
	second.granted()
	third.heartbeat()
	w.wantUsed(a, 5, 5)
}

func manyBelowTheLimit(w *world) {
	const many = 150
	a, b := w.join(), w.join()
	a.setLimit(1)
	a.hold(w.permits(1, many+1))
	waiting := make([]*waiter, many)
	for i := range waiting {
		waiting[i] = b.wait(w.permits(1, many+1))
	}
	a.setLimit(many + 1)
	for _, q := range waiting {
		q.poll()
	}
	w.wantUsed(a, many+1, many+1)
	w.wantWaiters(a, 0)
}

func smallerLimit(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	a.setLimit(3)
	first, second := a.hold(w.permits(2, 3)), b.hold(w.permits(1, 3))
	a.setLimit(1)
	w.wantUsed(a, 3, 1)
	for _, h := range []holding{first, second} {
		renewal := store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: h.Token, Share: h.req.Share}
		if err := h.c.renew(renewal).Err; err != nil {
			w.Errorf("Renew of permits under a limit that was lowered: got %v, want no error", err)
		}
		again := h.c.acquire(h.req)
		w.wantStatus("a holder's repeated request", again, store.Granted)
		if again.Weight != h.Weight {
			w.Errorf("Weight after the limit was lowered: got %d, want %d as before", again.Weight, h.Weight)
		}
	}
	q := c.wait(w.permits(1, 3))
	first.release()
	q.heartbeat()
	second.release()
	q.granted()
	w.wantUsed(a, 1, 1)
}

func forgottenLimit(w *world) {
	a, b := w.join(), w.join()
	a.setLimit(1)
	a.hold(w.permits(1, 2))
	q := b.wait(w.permits(1, 4))
	a.setLimit(0)
	q.granted()
	w.wantUsed(a, 2, 2)
	if got := a.inspect(w.key).StoredLimit; got != 0 {
		w.Errorf("StoredLimit after it was forgotten: got %d, want 0", got)
	}
	w.wantStatus("a try above the smallest limit", b.acquire(w.tryPermits(3, 4)), store.Held)
}

func limitOutlives(w *world) {
	a, b := w.join(), w.join()
	a.setLimit(1)
	a.hold(w.permits(1, 5)).release()
	a.hold(w.request()).release()
	w.wantFree(a, w.key)
	if got := a.inspect(w.key).StoredLimit; got != 1 {
		w.Errorf("StoredLimit of a free key: got %d, want 1", got)
	}
	if found := a.list(w.key); len(found) != 0 {
		w.Errorf("List: got %v, want nothing, because nobody holds the key or waits", found)
	}
	a.hold(w.permits(1, 5))
	w.wantStatus("a try with no permit of the stored limit left", b.acquire(w.tryPermits(1, 5)), store.Held)
}

func aboveTheLimit(w *world) {
	a, b := w.join(), w.join()
	a.setLimit(2)
	for _, r := range []store.AcquireRequest{w.permits(3, 5), w.tryPermits(3, 5)} {
		w.wantTooMuch("a request above the limit for a free key", a.acquire(r), 2)
	}
	w.wantFree(a, w.key)
	h := a.hold(w.permits(2, 5))
	for _, r := range []store.AcquireRequest{w.permits(3, 5), w.tryPermits(3, 5)} {
		w.wantTooMuch("a request above the limit", b.acquire(r), 2)
	}
	again := w.permits(3, 5)
	reply := a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, Requeue: &again})
	if reply.Requeue == nil {
		w.Fatal("Release with a Requeue: got no answer to it, want one")
	}
	w.wantTooMuch("a request above the limit that a release has", *reply.Requeue, 2)
	w.wantFree(a, w.key)
	w.wantWaiters(a, 0)
}

func waiterAboveTheLimit(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	a.hold(w.permits(1, 5))
	large, small := b.wait(w.permits(5, 5)), c.wait(w.permits(2, 5))
	a.setLimit(3)
	small.granted()
	w.wantUsed(a, 3, 3)
	w.wantWaiters(a, 0)
	w.wantTooMuch("the request of a waiter that is above the limit", b.acquire(large.req), 3)
}

func waiterAboveTheLimitIsTold(w *world) {
	a, b := w.hearing(), w.hearing()
	a.hold(w.permits(1, 5))
	large := b.wait(w.permits(5, 5))
	a.setLimit(3)
	b.await(store.EventWake, large.req.Owner)
	w.wantTooMuch("the request of a waiter that is above the limit", b.acquire(large.req), 3)
}

func laterWaiterAboveTheLimit(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	a.hold(w.permits(1, 5))
	all, large, small := b.wait(w.request()), c.wait(w.permits(5, 5)), a.wait(w.permits(2, 5))
	a.setLimit(3)
	all.heartbeat()
	w.wantTooMuch("the request of a waiter that is above the limit", c.acquire(large.req), 3)
	w.wantWaiters(a, 2)
	b.release(store.ReleaseRequest{Key: w.key, Owner: all.req.Owner})
	small.granted()
	w.wantUsed(a, 3, 3)
}

func waiterBelowTheLimitAgain(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	a.hold(w.permits(2, 5))
	large, small := b.wait(w.permits(5, 5)), c.wait(w.permits(4, 5))
	a.setLimit(4)
	small.heartbeat()
	a.setLimit(5)
	large.heartbeat()
	small.heartbeat()
	if large.reply.Rank != 0 || small.reply.Rank != 1 {
		w.Errorf("ranks after the limit was raised again: got %d and %d, want 0 and 1", large.reply.Rank, small.reply.Rank)
	}
}

func manyAboveTheLimit(w *world) {
	const many = 150
	a, b := w.join(), w.join()
	a.hold(w.permits(1, 5))
	large := make([]*waiter, many)
	for i := range large {
		large[i] = b.wait(w.permits(5, 5))
	}
	small := b.wait(w.permits(2, 5))
	a.setLimit(3)
	for _, q := range large {
		w.wantTooMuch("the request of a waiter that is above the limit", b.acquire(q.req), 3)
	}
	small.poll()
	w.wantUsed(a, 3, 3)
	w.wantWaiters(a, 0)
}

func extraUpToTheLimit(w *world) {
	a := w.join()
	for _, c := range []struct{ stored, own int32 }{{3, 5}, {5, 2}} {
		a.setLimit(c.stored)
		r := w.permits(1, c.own)
		r.Extra = 9
		h := a.hold(r)
		if h.Weight != c.stored {
			w.Errorf("Weight with nine more, where %d are stored: got %d, want all", c.stored, h.Weight)
		}
		h.release()
	}
}

func limitOfPermitsOnly(w *world) {
	a, b := w.join(), w.join()
	a.setLimit(1)
	first, second := a.hold(w.read()), b.hold(w.read())
	first.release()
	second.release()
	all := a.hold(w.request())
	q := b.wait(w.permits(1, 5))
	a.setLimit(2)
	q.heartbeat()
	all.release()
	q.granted()
	w.wantUsed(a, 1, 2)
}

func senselessLimits(w *world) {
	a := w.join()
	ctx, cancel := a.call()
	defer cancel()
	a.setLimit(store.MaxPermits)
	for _, limit := range []int32{-1, store.MaxPermits + 1} {
		if err := a.storeLimit(ctx, limit); !errors.Is(err, store.ErrInvalidOption) {
			w.Errorf("SetLimit(%d): got %v, want ErrInvalidOption", limit, err)
		}
	}
	if got := a.inspect(w.key).StoredLimit; got != store.MaxPermits {
		w.Errorf("StoredLimit after limits that make no sense: got %d, want %d as before", got, store.MaxPermits)
	}
}

func limitTooLate(w *world) {
	a, b := w.join(), w.join()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := a.storeLimit(ctx, 1); !errors.Is(err, context.Canceled) {
		w.Errorf("SetLimit with a context that was cancelled: got %v, want context.Canceled", err)
	}
	ctx, cancel = a.call()
	defer cancel()
	if err := a.session.Close(ctx); err != nil {
		w.Errorf("Close: got %v, want no error", err)
	}
	if err := a.storeLimit(ctx, 1); !errors.Is(err, store.ErrClosed) {
		w.Errorf("SetLimit after Close: got %v, want ErrClosed", err)
	}
	if got := b.inspect(w.key).StoredLimit; got != 0 {
		w.Errorf("StoredLimit: got %d, want 0", got)
	}
}

func limitsRefused(w *world) {
	a := w.join()
	session, ok := a.session.(store.LimitSession)
	if !ok {
		return // nobody can ask
	}
	ctx, cancel := a.call()
	defer cancel()
	if err := session.SetLimit(ctx, w.key, 1); !errors.Is(err, store.ErrUnsupported) {
		w.Errorf("SetLimit: got %v, want ErrUnsupported", err)
	}
	if got := a.inspect(w.key).StoredLimit; got != 0 {
		w.Errorf("StoredLimit: got %d, want 0", got)
	}
}
