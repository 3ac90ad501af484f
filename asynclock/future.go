// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

// LockChan is Lock as a future. The channel has room for one [Result], always receives exactly one,
// and is never closed. Nobody has to receive from it. The caller owns the lease once it has called
// [Result.Lease]. Before that, the lease is given back if ctx ends, the client closes or the trust
// deadline passes.
//
// No goroutine waits for the lease, so thousands may be pending. There are two exceptions: a ctx of a
// type that is not from package context, and a future with [WithWait](0) that finds another caller's
// first request under way. In a loop, call LockChan once before the select and set the variable to
// nil after the receive.
func (c *Client) LockChan(ctx context.Context, key string, options ...LockOption) <-chan Result {
	result := make(chan Result, 1)
	c.lockInto(newWaiter(ctx), result, key, options)
	return result
}

// LockEach is [Client.LockChan] for several keys that share one channel. Each key is requested by
// itself. The channel has room for all results, receives exactly one for each key, in the order in
// which they come, and is never closed. [Result.Key] tells them apart. A key that is listed twice
// is requested twice. Without keys the channel never receives anything.
//
// A lease that waits in the channel for longer than its deadline is given back, and its claim fails with
// [ErrNotClaimed]. So list no more keys at once than are claimed and worked off in a few seconds.
//
// Results that are claimed one by one are leases held at the same time. A caller that waits for one
// key while it holds another may block others that do so in another order.
func (c *Client) LockEach(ctx context.Context, keys []string, options ...LockOption) <-chan Result {
	results := make(chan Result, len(keys))
	for _, key := range keys {
		c.lockInto(newWaiter(ctx), results, key, options)
	}
	return results
}

// lockInto requests a key for a future. The channel has room for the result.
func (c *Client) lockInto(w *waiter, result chan Result, key string, options []LockOption) {
	w.Future, w.result = true, result
	settings, err := c.admit(w, key, options)
	if err != nil {
		w.refuse(key, err)
		return
	}
	cancel := w.boundWait(settings.wait)
	if w.Stage == machine.Joining && w.joinFuture(cancel) {
		return
	}
	if err := c.enqueueFuture(w, key, cancel); err != nil {
		if cancel != nil {
			cancel()
		}
		w.refuse(key, err)
	}
}

// refuse ends a future that was never queued.
func (w *waiter) refuse(key string, err error) {
	w.state = nil // the error names the key
	w.Stage, w.Err = machine.Ended, &Error{w.op(), key, err}
	w.result <- Result{w}
}

// enqueueFuture is lock for LockChan: it does not wait, and watches the context. Cancel, if not nil,
// ends the context.
func (c *Client) enqueueFuture(w *waiter, key string, cancel context.CancelFunc) error {
	arrived, err := c.beginFuture(w, key)
	if err != nil {
		return err
	}
	if arrived.call != nil {
		c.send(arrived.call)
	}
	if arrived.watch != nil {
		w.state.shard.arm(w.ctx, arrived.watch, cancel)
	}
	return nil
}

// beginFuture adds a future to its key's queue, or does so later. It returns the request to send and
// the watch to arm, if there are such.
func (c *Client) beginFuture(w *waiter, key string) (arrival, error) {
	arrived, err := c.enqueue(w, key, w.ctx.Done())
	if v := arrived.verdict; v != nil {
		go c.enqueueLater(w, key, v) // ends with the attempt of another waiter, or with the context
		return arrival{}, nil
	}
	return arrived, err
}

// enqueueLater is enqueueFuture for a future that does not wait, once the store has answered the
// request that is under way.
func (c *Client) enqueueLater(w *waiter, key string, answer *verdict) {
	if err := answer.await(w.ctx); err != nil {
		w.refuse(key, err)
		return
	}
	c.enqueueNow(w, key)
}

// enqueueNow is enqueueFuture for a future that does not wait, and whose caller has gone on.
func (c *Client) enqueueNow(w *waiter, key string) {
	if err := c.enqueueFuture(w, key, nil); err != nil {
		w.refuse(key, err)
	}
}
