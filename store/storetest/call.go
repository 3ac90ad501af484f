// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var callCases = []testCase{
	{"each element of a batch has its own answer", anyStore, mixedBatch},
	{"one batch grants a key once", anyStore, sameKeyInBatch},
	{"an empty batch has no answers", anyStore, emptyBatch},
	{"a context that has ended does nothing", anyStore, endedContext},
	{"a session that was left answers that it is closed", anyStore, leftSession},
	{"leaving does not release", anyStore, leavingKeepsHoldings},
}

// batchKeys returns n keys of one lane, named by their place in the batch.
func (w *world) batchKeys(s store.Session, n int) []string {
	lane := s.Lane(w.key)
	var keys []string
	for i := 0; len(keys) < n; i++ {
		key := fmt.Sprintf("%s/%d", w.key, i)
		if s.Lane(key) == lane {
			keys = append(keys, key)
		}
	}
	return keys
}

func mixedBatch(w *world) {
	const n = 200
	a, b := w.join(), w.join()
	keys := w.batchKeys(a.session, n)

	// Another client holds every third key.
	others := make(map[int]holding)
	acquires := make([]store.AcquireRequest, n)
	for i, key := range keys {
		acquires[i] = w.try()
		acquires[i].Key = key
		if i%3 == 0 {
			r := w.request()
			r.Key = key
			others[i] = b.hold(r)
		}
	}
	ctx, cancel := a.call() // a time limit for each: the batches are large for a busy machine
	replies := a.session.Acquire(ctx, acquires)
	cancel()
	w.wantReplies("Acquire", len(replies), n)
	renews := make([]store.RenewRequest, n)
	for i, reply := range replies {
		want := store.Granted
		if i%3 == 0 {
			want = store.Held
		}
		if reply.Err != nil || reply.Status != want {
			w.Errorf("Acquire at %d: got status %d, error %v; want %d", i, reply.Status, reply.Err, want)
		}
		renews[i] = store.RenewRequest{Key: keys[i], Owner: acquires[i].Owner, TTL: long, Token: reply.Token}
	}

	// Also, every fifth of a's holdings has ended by the time of the renewal.
	for i, h := range others {
		if i%5 == 0 {
			h.release()
		}
	}
	ctx, cancel = a.call()
	renewals := a.session.Renew(ctx, renews)
	cancel()
	w.wantReplies("Renew", len(renewals), n)
	for i, reply := range renewals {
		var want error
		switch {
		case i%15 == 0:
			want = store.ErrExpired
		case i%3 == 0:
			want = store.ErrStolen
		}
		if !errors.Is(reply.Err, want) {
			w.Errorf("Renew at %d: got %v, want %v", i, reply.Err, want)
		}
	}
	releases := make([]store.ReleaseRequest, n)
	for i, r := range renews {
		releases[i] = store.ReleaseRequest{Key: r.Key, Owner: r.Owner, Token: r.Token}
	}
	ctx, cancel = a.call()
	ends := a.session.Release(ctx, releases)
	cancel()
	w.wantReplies("Release", len(ends), n)
	for i, reply := range ends {
		if want := i%3 != 0; reply.Err != nil || reply.WasHeld != want || errors.Is(reply.Cause, store.ErrLost) == want {
			w.Errorf("Release at %d: got WasHeld %v, cause %v, error %v; want %v", i, reply.WasHeld, reply.Cause, reply.Err, want)
		}
	}
	for i, h := range others {
		if i%5 != 0 {
			w.wantHeldBy(a, h.req)
		}
	}
}

// wantReplies ends the case unless a batch has as many replies as requests.
func (w *world) wantReplies(what string, got, want int) {
	w.Helper()
	if got != want {
		w.Fatalf("%s of %d: got %d replies, want one for each", what, want, got)
	}
}

func sameKeyInBatch(w *world) {
	a := w.join()
	ctx, cancel := a.call()
	defer cancel()
	granted := 0
	for _, reply := range a.session.Acquire(ctx, []store.AcquireRequest{w.try(), w.try(), w.try()}) {
		switch {
		case reply.Err == nil && reply.Status == store.Granted:
			granted++
		case reply.Err != nil || reply.Status != store.Held:
			w.Errorf("Acquire: got status %d, error %v; want Granted or Held", reply.Status, reply.Err)
		}
	}
	if granted != 1 {
		w.Errorf("one key was granted to %d owners of a batch, want 1", granted)
	}
}

func emptyBatch(w *world) {
	a := w.join()
	ctx, cancel := a.call()
	defer cancel()
	if got := len(a.session.Acquire(ctx, nil)); got != 0 {
		w.Errorf("Acquire of nothing: got %d replies, want 0", got)
	}
	if got := len(a.session.Renew(ctx, nil)); got != 0 {
		w.Errorf("Renew of nothing: got %d replies, want 0", got)
	}
	if got := len(a.session.Release(ctx, nil)); got != 0 {
		w.Errorf("Release of nothing: got %d replies, want 0", got)
	}
}

// failures makes every call that can fail and returns the errors by name.
func (c *client) failures(ctx context.Context, holder store.AcquireRequest) map[string]error {
	w := c.w
	errs := make(map[string]error)
	for i, reply := range c.session.Acquire(ctx, []store.AcquireRequest{w.request(), w.try()}) {
		errs[fmt.Sprintf("Acquire at %d", i)] = reply.Err
	}
	for i, reply := range c.session.Renew(ctx, []store.RenewRequest{
		{Key: w.key, Owner: holder.Owner, TTL: long}, {Key: w.key, Owner: newOwner(), TTL: long},
	}) {
		errs[fmt.Sprintf("Renew at %d", i)] = reply.Err
	}
	for i, reply := range c.session.Release(ctx, []store.ReleaseRequest{
		{Key: w.key, Owner: holder.Owner}, {Key: w.key, Owner: newOwner()},
	}) {
		errs[fmt.Sprintf("Release at %d", i)] = reply.Err
	}
	_, errs["Inspect"] = c.session.Inspect(ctx, w.key)
	_, errs["Force"] = c.session.Force(ctx, w.key, 0)
	errs["List"] = nil
	for _, err := range c.session.List(ctx, w.key) {
		errs["List"] = err
	}
	if got, want := len(errs), 9; got != want {
		w.Errorf("got %d answers, want %d: one for each element", got, want)
	}
	return errs
}

func endedContext(w *world) {
	a, b := w.join(), w.join()
	r := w.request()
	r.TTL = medium
	h := a.hold(r)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for what, err := range a.failures(ctx, h.req) {
		if !errors.Is(err, context.Canceled) {
			w.Errorf("%s with a context that was cancelled: got %v, want context.Canceled", what, err)
		}
	}
	info := b.inspect(w.key)
	if !info.Held || info.Holder != r.Description || info.Waiters != 0 || info.Remaining > medium {
		w.Errorf("Inspect after calls with a cancelled context: got %+v, want all as before", info)
	}
	h.release()
}

func leftSession(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	ctx, cancel := a.call()
	defer cancel()
	if err := a.session.Close(ctx); err != nil {
		w.Errorf("Close: got %v, want no error", err)
	}
	for what, err := range a.failures(ctx, h.req) {
		if !errors.Is(err, store.ErrClosed) {
			w.Errorf("%s after Close: got %v, want ErrClosed", what, err)
		}
	}
	w.wantHeldBy(b, h.req)
}

func leavingKeepsHoldings(w *world) {
	a, b := w.join(), w.join()
	r := w.request()
	r.TTL = short
	start := time.Now()
	a.hold(r)
	ctx, cancel := a.call()
	defer cancel()
	if err := a.session.Close(ctx); err != nil {
		w.Errorf("Close: got %v, want no error", err)
	}
	b.next(w.request())
	if got := time.Since(start); got < short-slack {
		w.Errorf("the next was granted %v after a holder left, want not before its TTL of %v", got, short)
	}
}
