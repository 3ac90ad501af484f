// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var sharedCases = []testCase{
	{"readers hold a key together", shares, readersTogether},
	{"a writer waits for every reader", shares, writerWaitsForReaders},
	{"a reader does not pass a writer that waits", shares, readerBehindWriter},
	{"readers next to each other are granted together", shares, readersInOneStep},
	{"a writer that leaves the queue lets readers in", shares, writerLeaves},
	{"a reader that dies leaves the others alone", shares, readerDies},
	{"readers have one token between those of the writers", shares, readersToken},
	{"a repeated request of a reader finds what it has", shares, readerRepeats},
	{"a writer can go on as a reader", shares, writerReadsOn},
	{"what goes on as a reader can be said again", shares, writerReadsOnAgain},
	{"a reader behind a writer that died comes in once", shares, readerBehindTheDead},
	{"force takes a key from all its readers", sharesAndMessages, forcedReaders},
	{"any number of readers come in", shares, manyReaders},
	{"a store without shares refuses them and changes nothing", noShares, sharesRefused},
}

// read is request for a reader.
func (w *world) read() store.AcquireRequest {
	r := w.request()
	r.Share = store.Share{Mode: store.Shared}
	return r
}

func readersTogether(w *world) {
	a, b := w.join(), w.join()
	first, second := a.hold(w.read()), b.hold(w.read())
	w.wantTogether(first, second)
	info := b.inspect(w.key)
	if token := max(first.Fence, second.Fence); !info.Held || info.Mode != store.Shared || len(info.Holders) != 2 || info.Token != token {
		w.Errorf("Inspect: got %+v, want two readers with token %d", info, token)
	}
	first.release()
	w.wantHeldBy(a, second.req)
	second.release()
	w.wantFree(a, w.key)
}

// wantTogether checks that readers hold the key together. In a store with sessions each may have a
// Fence of its own.
func (w *world) wantTogether(readers ...holding) {
	w.Helper()
	for _, r := range readers {
		if r.Fence == 0 || r.Fence != readers[0].Fence && !w.sessions() || r.Token < r.Fence || r.Weight != 0 {
			w.Errorf("Grant of a reader: got %+v, want the Fence of the first, %d, and a Token that is not smaller", r.Grant, readers[0].Fence)
		}
	}
}

func writerWaitsForReaders(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	first, second := a.hold(w.read()), b.hold(w.read())
	writer := c.wait(w.request())
	first.release()
	writer.heartbeat()
	second.release()
	if got, last := writer.granted(), max(first.Fence, second.Fence); got.Fence != 0 || got.Token <= last {
		w.Errorf("Grant of the writer: got %+v, want a Token above %d and no Fence", got.Grant, last)
	}
}

func readerBehindWriter(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	reader := a.hold(w.read())
	writer := b.wait(w.request())
	try := w.read()
	try.Wait = false
	w.wantStatus("a try behind a writer that waits", c.acquire(try), store.Held)
	late := c.wait(w.read())
	reader.release()
	h := writer.granted()
	late.heartbeat()
	h.release()
	late.granted().release()
}

func readersInOneStep(w *world) {
	a, b, c, d := w.join(), w.join(), w.join(), w.join()
	h := a.hold(w.request())
	first, second := b.wait(w.read()), c.wait(w.read())
	writer := d.wait(w.request())
	behind := a.wait(w.read())
	before := h.lastToken()
	h.release()
	one, other := first.granted(), second.granted()
	w.wantTogether(one, other)
	if got := min(one.Fence, other.Fence); got <= before {
		w.Errorf("Fence: got %d, want more than %d, the last token of the writer before", got, before)
	}
	writer.heartbeat()
	behind.heartbeat()
	one.release()
	other.release()
	writer.granted().release()
	behind.granted().release()
}

func writerLeaves(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	reader := a.hold(w.read())
	writer, late := b.wait(w.request()), c.wait(w.read())
	if b.release(store.ReleaseRequest{Key: w.key, Owner: writer.req.Owner}).WasHeld {
		w.Error("Release of a waiter: got WasHeld true, want false")
	}
	w.wantTogether(reader, late.granted())
}

func readerDies(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	dies := w.read()
	dies.TTL = short
	first, second := a.hold(dies), b.hold(w.read())
	expired()
	writer := c.wait(w.request())
	if err := a.renew(store.RenewRequest{Key: w.key, Owner: first.req.Owner, TTL: long, Token: first.Token, Share: dies.Share}).Err; !errors.Is(err, store.ErrExpired) {
		w.Errorf("Renew of a reader whose time is over: got %v, want ErrExpired", err)
	}
	if err := b.renew(store.RenewRequest{Key: w.key, Owner: second.req.Owner, TTL: long, Token: second.Token, Share: dies.Share}).Err; err != nil {
		w.Errorf("Renew of another reader: got %v, want no error", err)
	}
	w.wantHeldBy(c, second.req)
	second.release()
	writer.granted()
}

func readersToken(w *world) {
	a, b := w.join(), w.join()
	last := int64(0)
	for range 3 {
		writer := a.hold(w.request())
		if writer.Token <= last {
			w.Errorf("Token of a writer: got %d, want more than %d, the largest of the readers before", writer.Token, last)
		}
		before := writer.lastToken()
		a.release(store.ReleaseRequest{Key: w.key, Owner: writer.req.Owner, Token: before})
		first, second := a.hold(w.read()), b.hold(w.read())
		w.wantTogether(first, second)
		first.release()
		third := a.hold(w.read())
		w.wantTogether(second, third)
		if got := min(first.Fence, second.Fence, third.Fence); got <= before {
			w.Errorf("Fence of readers: got %d, want more than %d, the writer's last token", got, before)
		}
		last = max(first.Token, second.Token, third.Token)
		second.release()
		third.release()
	}
}

func readerRepeats(w *world) {
	a, b := w.join(), w.join()
	r := w.read()
	r.TTL = medium
	first, second := a.hold(r), b.hold(w.read())
	r.TTL = long
	again := a.acquire(r)
	w.wantStatus("the request of a reader, repeated", again, store.Granted)
	if again.Fence != first.Fence || again.Token != first.Token {
		w.Errorf("Grant: got %+v, want %+v as before", again.Grant, first.Grant)
	}
	info := b.inspect(w.key)
	if len(info.Holders) != 2 {
		w.Errorf("holders: got %d, want 2", len(info.Holders))
	}
	for _, h := range info.Holders {
		w.wantRemains("Remaining of a reader", h.Remaining, medium, long)
	}
	second.release()
}

func writerReadsOn(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	reader, writer := b.wait(w.read()), c.wait(w.request())
	last := h.lastToken()
	if !w.sessions() { // otherwise these are all
		last += 10
	}
	reply := a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: last, Rest: &store.Share{Mode: store.Shared}})
	if !reply.WasHeld || reply.Grant.Fence <= last {
		w.Fatalf("Release with a Rest: got %+v, want that it was held, and a Fence above %d", reply, last)
	}
	rest := holding{a, w.read(), reply.Grant, time.Now()}
	rest.req.Owner = h.req.Owner
	other := reader.granted()
	w.wantTogether(rest, other)
	writer.heartbeat()
	other.release()
	writer.heartbeat()
	rest.release()
	if got, last := writer.granted(), max(rest.Fence, other.Fence); got.Token <= last {
		w.Errorf("Token of the next writer: got %d, want more than %d, the largest of the readers", got.Token, last)
	}
}

func writerReadsOnAgain(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	r := store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, Rest: &store.Share{Mode: store.Shared}}
	first := a.release(r)
	second := b.hold(w.read())
	again := a.release(r)
	if !first.WasHeld || !again.WasHeld || first.Grant != again.Grant {
		w.Errorf("Release with a Rest, twice: got %+v and %+v, want the same", first, again)
	}
	w.wantTogether(holding{a, h.req, first.Grant, time.Now()}, second)
	second.release()
	if !a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: first.Grant.Token}).WasHeld {
		w.Error("Release of the rest: got WasHeld false, want true")
	}
	if reply := a.release(r); reply.WasHeld {
		w.Error("Release with a Rest of nothing: got WasHeld true, want false")
	}
	w.wantFree(a, w.key)
}

func readerBehindTheDead(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	a.hold(w.read())
	dies := w.request()
	dies.WaiterTTL = short
	b.wait(dies)
	lives := w.read()
	lives.GrantTTL = medium
	w.wantServedOnce(c, lives)
}

func forcedReaders(w *world) {
	a, b := w.hearing(), w.hearing()
	first, second := a.hold(w.read()), b.hold(w.read())
	if !a.force(w.key) {
		w.Error("Force: got false, want true")
	}
	a.awaitForced(first.req.Owner)
	b.awaitForced(second.req.Owner)
	w.wantFree(a, w.key)
}

func manyReaders(w *world) {
	const readers = 150
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	waiting := make([]*waiter, readers)
	for i := range waiting {
		waiting[i] = b.wait(w.read())
	}
	h.release()
	holdings := make([]holding, readers)
	for i, q := range waiting {
		holdings[i] = q.poll()
	}
	w.wantTogether(holdings...)
	if got := slices.MaxFunc(holdings, func(a, b holding) int { return int(a.Token - b.Token) }); got.Token < holdings[0].Token+readers-1 {
		w.Errorf("the largest Token of %d readers: got %d after %d, want each to have its own", readers, got.Token, holdings[0].Token)
	}
	for _, h := range holdings {
		h.release()
	}
	w.wantFree(a, w.key)
}

func sharesRefused(w *world) { w.wantUnsupported(w.read(), store.Share{Mode: store.Shared}) }

// wantUnsupported checks that the store refuses a share and changes nothing.
func (w *world) wantUnsupported(r store.AcquireRequest, rest store.Share) {
	w.Helper()
	a := w.join()
	ctx, cancel := a.call()
	defer cancel()
	if reply := a.session.Acquire(ctx, []store.AcquireRequest{r})[0]; !errors.Is(reply.Err, store.ErrUnsupported) {
		w.Errorf("Acquire: got status %d, error %v; want ErrUnsupported", reply.Status, reply.Err)
	}
	w.wantFree(a, w.key)
	h := a.hold(w.request())
	release := store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: h.Token, Rest: &rest}
	if reply := a.session.Release(ctx, []store.ReleaseRequest{release})[0]; !errors.Is(reply.Err, store.ErrUnsupported) {
		w.Errorf("Release with a Rest: got WasHeld %v, error %v; want ErrUnsupported", reply.WasHeld, reply.Err)
	}
	w.wantHeldBy(a, h.req)
	h.release()
}
