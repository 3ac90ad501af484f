// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var inspectionCases = []testCase{
	{"inspect of an unused key finds nobody", anyStore, inspectUnused},
	{"inspect describes the holder", anyStore, inspectHolder},
	{"inspect describes the queue", queues, inspectQueue},
	{"inspect and list count the living only", queues, deadAreNotCounted},
	{"a key whose holder and waiters have died is not listed", queues, deadAreNotListed},
	{"list finds what is held, by prefix", anyStore, listByPrefix},
	{"list finds a free key that is waited for", queues, listWaitedFor},
	{"list pages through many keys", anyStore, listMany},
}

// wantNoOwner checks that the output for people contains no owner id.
func (w *world) wantNoOwner(shown any, requests ...store.AcquireRequest) {
	w.Helper()
	text := fmt.Sprintf("%+v", shown)
	for _, r := range requests {
		if strings.Contains(text, r.Owner) {
			w.Errorf("an owner id, which is secret, is shown in %s", text)
		}
	}
}

func inspectUnused(w *world) {
	info := w.join().inspect(w.key)
	if info.Key != w.key || info.Held || info.Holder != "" || info.Token != 0 || info.Waiters != 0 || len(info.Queue) != 0 {
		w.Errorf("Inspect of an unused key: got %+v, want nothing but the key", info)
	}
}

func inspectHolder(w *world) {
	a, b := w.join(), w.join()
	r := w.request()
	r.Description = "worker@host-7 pid 4711, »Überweisung« 100% {x} a:b"
	h := a.hold(r)
	info := b.inspect(w.key)
	if info.Key != w.key || !info.Held || info.Holder != r.Description {
		w.Errorf("Inspect: got %+v, want key %q held by %q", info, w.key, r.Description)
	}
	w.wantRemains("Remaining", info.Remaining, medium, long)
	if w.store.Features().Tokens && info.Token != h.Token {
		w.Errorf("Token: got %d, want %d", info.Token, h.Token)
	}
	w.wantNoOwner(info, r)
	w.wantNoOwner(b.acquire(w.try()), r)
}

func inspectQueue(w *world) {
	const waiters = 3
	h := w.join().hold(w.request())
	requests := []store.AcquireRequest{h.req}
	for range waiters {
		requests = append(requests, w.join().wait(w.request()).req)
	}
	info := h.c.inspect(w.key)
	if info.Waiters != waiters || len(info.Queue) != waiters {
		w.Fatalf("Inspect: got Waiters %d and %d of them described, want %d both", info.Waiters, len(info.Queue), waiters)
	}
	for i, got := range info.Queue {
		if want := requests[i+1].Description; got.Holder != want {
			w.Errorf("Holder of waiter %d: got %q, want %q", i, got.Holder, want)
		}
		if got.Age < 0 || got.Age > patience {
			w.Errorf("Age of waiter %d: got %v, want a moment", i, got.Age)
		}
	}
	w.wantNoOwner(info, requests...)
	w.wantNoOwner(h.c.list(w.key), requests...)
}

func deadAreNotCounted(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	a.hold(w.request())
	r := w.request()
	r.WaiterTTL = short
	b.wait(r)
	q := c.wait(w.request())
	expired()
	info := a.inspect(w.key)
	if info.Waiters != 1 || len(info.Queue) != 1 || info.Queue[0].Holder != q.req.Description {
		w.Errorf("Inspect with a dead waiter before a living one: got %+v, want the living one only", info)
	}
	if info := a.list(w.key)[w.key]; info.Waiters != 1 {
		w.Errorf("List with a dead waiter before a living one: got %+v, want Waiters 1", info)
	}
}

func deadAreNotListed(w *world) {
	a, b := w.join(), w.join()
	w.allDie(a, b)
	if info := a.inspect(w.key); info.Held || info.Waiters != 0 || len(info.Queue) != 0 {
		w.Errorf("Inspect when all have died: got %+v, want nobody", info)
	}
	w.wantList(a, w.key)
}

func listByPrefix(w *world) {
	a, b := w.join(), w.join()
	var held []holding
	for _, key := range []string{w.key, w.key + "/1", w.key + "/2", w.key + "/22", "not " + w.key} {
		r := w.request()
		r.Key = key
		held = append(held, a.hold(r))
	}
	w.wantList(b, w.key, w.key, w.key+"/1", w.key+"/2", w.key+"/22")
	w.wantList(b, w.key+"/", w.key+"/1", w.key+"/2", w.key+"/22")
	w.wantList(b, w.key+"/2", w.key+"/2", w.key+"/22")
	w.wantList(b, w.key+"/3")
	info := b.list(w.key + "/1")[w.key+"/1"]
	if h := held[1]; info.Holder != h.req.Description || info.Queue != nil {
		w.Errorf("List: got %+v, want it held by %q and no Queue", info, h.req.Description)
	}
	w.wantRemains("Remaining", info.Remaining, medium, long)
	if w.store.Features().Tokens && info.Token != held[1].Token {
		w.Errorf("Token: got %d, want %d", info.Token, held[1].Token)
	}
	for _, h := range held {
		w.wantNoOwner(b.list(w.key), h.req)
		h.release()
	}
	w.wantList(b, w.key)
}

// wantList checks which keys List yields for a prefix.
func (w *world) wantList(c *client, prefix string, want ...string) {
	w.Helper()
	got := c.list(prefix)
	for _, key := range want {
		if _, ok := got[key]; !ok {
			w.Errorf("List(%q): %q is missing", prefix, key)
		}
		delete(got, key)
	}
	for key := range got {
		w.Errorf("List(%q): got %q, which it should not find", prefix, key)
	}
}

func listWaitedFor(w *world) {
	a, b := w.join(), w.join()
	q, end := w.waitBehind(a, b, w.request())
	if info := a.list(w.key)[w.key]; (info.Waiters != 1 || info.Queue != nil) && time.Now().Before(end.earliest) { // otherwise it may have passed on
		w.Errorf("List: got %+v, want Waiters 1 and no Queue", info)
	}
	end.isOver()
	info, ok := a.list(w.key)[w.key]
	if passedOn := w.sessions() && info.Holder == q.req.Description; !ok || info.Waiters != 1 && !passedOn {
		w.Errorf("List of a key whose holding expired and that one waits for: got %+v, want it with Waiters 1", info)
	}
}

func listMany(w *world) {
	const n = 300
	a := w.join()
	batches := make(map[int][]store.AcquireRequest)
	for i := range n {
		r := w.request()
		r.Key = fmt.Sprintf("%s/%d", w.key, i)
		lane := a.session.Lane(r.Key)
		batches[lane] = append(batches[lane], r)
	}
	for _, batch := range batches {
		ctx, cancel := a.call() // a time limit for each: they are many for a busy machine
		replies := a.session.Acquire(ctx, batch)
		cancel()
		for _, reply := range replies {
			if reply.Err != nil || reply.Status != store.Granted {
				w.Fatalf("Acquire of a free key: got status %d, error %v; want Granted", reply.Status, reply.Err)
			}
		}
	}
	if got := len(a.list(w.key + "/")); got != n {
		w.Errorf("List: got %d keys, want %d", got, n)
	}
	ctx, cancel := a.call()
	defer cancel()
	for _, err := range a.session.List(ctx, w.key+"/") {
		if err != nil {
			w.Errorf("List: got error %v, want none", err)
		}
		break // a listing may be left early
	}
	for _, batch := range batches {
		releases := make([]store.ReleaseRequest, len(batch))
		for i, r := range batch {
			releases[i] = store.ReleaseRequest{Key: r.Key, Owner: r.Owner}
		}
		ctx, cancel := a.call()
		replies := a.session.Release(ctx, releases)
		cancel()
		for _, reply := range replies {
			if reply.Err != nil {
				w.Fatalf("Release: got error %v, want none", reply.Err)
			}
		}
	}
	if got := len(a.list(w.key + "/")); got != 0 {
		w.Errorf("List after all releases: got %d keys, want none", got)
	}
}
