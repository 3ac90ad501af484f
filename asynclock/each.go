// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"slices"
	"sync"
)

// eachWindow is how many results of a LockEach may be pending or not looked at.
const eachWindow = 32

// LockEach is [Client.LockChan] for several keys that share one channel. Each key is requested by itself.
// The channel receives exactly one Result for each key, in the order in which they come, and is never
// closed. [Result.Key] tells them apart. A key that is listed twice is requested twice. Without keys the
// channel never receives anything.
//
// The keys are requested at the pace of the receivers: 32 at first, and another one for each Result whose
// [Result.Lease] was called. So the list may have any length, and the work may take any time.
//
// Leases that are received one by one are held at the same time. A caller that waits for one
// key while it holds another may block others that do so in another order.
func (c *Client) LockEach(ctx context.Context, keys []string, options ...LockOption) <-chan Result {
	n := min(len(keys), eachWindow)
	e := &each{client: c, ctx: ctx, options: options, keys: slices.Clone(keys), results: make(chan Result, n)}
	e.request(n)
	return e.results
}

// An each is a call of LockEach.
type each struct {
	client  *Client
	ctx     context.Context //nolint:containedctx // of all its waiters
	options []LockOption
	results chan Result // has room for all that were requested and not received

	mu   sync.Mutex // nothing else is locked under it
	keys []string   // not requested yet

	takingBack sync.Mutex // two at a time would hold each other's results
}

// request requests up to n more keys.
func (e *each) request(n int) {
	e.mu.Lock()
	n = min(n, len(e.keys))
	keys := e.keys[:n]
	e.keys = e.keys[n:]
	e.mu.Unlock()
	for _, key := range keys {
		w := newWaiter(e.ctx)
		w.each, w.result = e, e.results
		e.client.lockInto(w, key, e.options)
	}
}

// received is called when somebody looks at the result of w.
func (e *each) received(w *waiter) {
	if e == nil {
		return
	}
	e.mu.Lock()
	first := !w.counted
	w.counted = true
	e.mu.Unlock()
	if first {
		e.request(1)
	}
}

// send puts the result of w into the channel. It reports whether somebody has received it at once.
func (e *each) send(w *waiter) (received bool) {
	e.takingBack.Lock() // which empties the channel for a moment
	defer e.takingBack.Unlock()
	e.results <- Result{waiter: w}
	return len(e.results) == 0
}

// lies reports whether the result of w is in the channel.
func (e *each) lies(w *waiter) (found bool) {
	e.takingBack.Lock()
	defer e.takingBack.Unlock()
	for range len(e.results) { // all of them, so that their order stays
		select {
		case r := <-e.results:
			found = found || r.waiter == w
			e.results <- r
		default:
		}
	}
	return found
}

// takeBack takes the result of w out of the channel. The channel may have results of other waiters too.
func (e *each) takeBack(w *waiter) (found bool) {
	e.takingBack.Lock()
	defer e.takingBack.Unlock()
	for range len(e.results) { // all of them, so that their order stays
		select {
		case r := <-e.results:
			if r.waiter == w {
				found, w.sent = true, false
				continue
			}
			e.results <- r
		default:
			return found
		}
	}
	return found
}
