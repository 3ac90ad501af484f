// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var handoffCases = []testCase{
	{"a release hands the key to the waiters in their order", queues, handoffInOrder},
	{"a missed grant is found by asking again", queues, missedGrant},
	{"asking again turns a grant TTL into a TTL", queues, claimSetsTTL},
	{"a grant that nobody looks at ends with its grant TTL", queues, grantTTLEnds},
	{"force hands the key to the next waiter", queues, forceHandsOn},
	{"many clients on one key hold it one at a time", anyStore, oneAtATime},
}

func handoffInOrder(w *world) {
	const waiters = 5
	h := w.join().hold(w.request())
	var queue [waiters]*waiter
	for i := range queue {
		queue[i] = w.join().wait(w.request())
	}
	for i, q := range queue {
		w.catchUp(func() bool { q.heartbeat(); return q.reply.Rank == 0 })
		if got, want := q.reply.Rank, 0; got != want {
			w.Errorf("Rank of waiter %d when it is next: got %d, want %d", i, got, want)
		}
		before := h.lastToken()
		h.release()
		h = q.granted()
		if w.store.Features().Tokens && h.Token <= before {
			w.Errorf("token of waiter %d: got %d, want more than %d", i, h.Token, before)
		}
		if e, ok := q.c.find(store.EventGrant, q.req.Owner); ok && e.Waiters != waiters-1-i {
			w.Errorf("Waiters of the event: got %d, want %d", e.Waiters, waiters-1-i)
		}
		w.wantHeldBy(q.c, q.req)
	}
	h.release()
	w.wantFree(h.c, w.key)
}

func missedGrant(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	q := b.wait(w.request())
	h.release()
	reply := b.acquire(q.req)
	if reply.Status != store.Granted {
		w.Fatalf("Acquire after the release: got status %d, want Granted", reply.Status)
	}
	if q.reply.Recheck > 0 || w.sessions() { // the request itself may have found it
		return
	}
	e := b.awaitThat("an event that the key was granted, or that the owner should ask", toAsk(q.req.Owner))
	if e.Kind == store.EventGrant && e.Grant.Token != reply.Token {
		w.Errorf("token: got %d by the event and %d by asking, want the same", e.Grant.Token, reply.Token)
	}
}

func claimSetsTTL(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	r := w.request()
	r.GrantTTL = medium
	q := b.wait(r)
	h.release()
	w.wantRemains("Remaining after the handoff", a.inspect(w.key).Remaining, 0, medium)
	b.hold(q.req)
	w.wantRemains("Remaining after asking again", a.inspect(w.key).Remaining, medium, long)
}

func grantTTLEnds(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	r := w.request()
	r.GrantTTL = short
	b.wait(r)
	q := c.wait(w.request())
	start := time.Now()
	h.release()
	third := q.poll()
	if got := time.Since(start); got < short-slack {
		w.Errorf("the key was granted again after %v, want not before the grant TTL, %v", got, short)
	}
	w.wantHeldBy(a, third.req)
}

func forceHandsOn(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	q := b.wait(w.request())
	forcing, used := w.join(), h.lastToken()
	if !forcing.force(w.key) {
		w.Error("Force of a held key: got false, want true")
	}
	second := q.granted()
	if w.store.Features().Tokens && second.Token <= used {
		w.Errorf("token after Force: got %d, want more than %d", second.Token, used)
	}
	w.wantHeldBy(a, q.req)
}

func oneAtATime(w *world) {
	const clients, rounds = 8, 10
	var (
		wg     sync.WaitGroup
		inside atomic.Int32
		last   atomic.Int64 // the lock under test orders its uses, but the race detector does not see that
	)
	for range clients {
		c := w.join()
		wg.Go(func() {
			for range rounds {
				h, ok := c.contend(w.request())
				if !ok {
					return
				}
				if n := inside.Add(1); n != 1 {
					w.Errorf("%d clients hold the key, want 1", n)
				}
				if w.store.Features().Tokens {
					used := h.lastToken()
					if before := last.Swap(used); h.Token <= before {
						w.Errorf("token: got %d, want more than %d of the holder before", h.Token, before)
					}
				}
				time.Sleep(time.Millisecond) // so that another goroutine has time to come in
				inside.Add(-1)
				ctx, cancel := c.call()
				reply := c.session.Release(ctx, []store.ReleaseRequest{{Key: w.key, Owner: h.req.Owner, Token: last.Load()}})[0]
				cancel()
				if reply.Err != nil || !reply.WasHeld {
					w.Errorf("Release by the holder: got %+v, want WasHeld", reply)
					return
				}
			}
		})
	}
	wg.Wait()
	w.wantFree(w.join(), w.key)
}

// contend takes the key as the core does: by the message, and by repeated requests in case no
// message comes. It is called from many goroutines, so it must not end the test.
func (c *client) contend(r store.AcquireRequest) (holding, bool) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		ctx, cancel := c.call()
		reply := c.session.Acquire(ctx, []store.AcquireRequest{r})[0]
		cancel()
		switch {
		case reply.Err != nil:
			c.w.Errorf("Acquire: got error %v, want none", reply.Err)
			return holding{}, false
		case reply.Status == store.Granted:
			return holding{c, r, reply.Grant, time.Now()}, true
		}
		r.Ticket = reply.Ticket
		select {
		case <-c.news:
		case <-time.After(5 * pause):
		}
		if e, ok := c.find(store.EventGrant, r.Owner); ok && e.Grant.Token > reply.Mark {
			return holding{c, r, e.Grant, time.Now()}, true
		}
	}
	c.w.Errorf("a client was not granted the key in %v", patience)
	return holding{}, false
}
