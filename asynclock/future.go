// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

// LockChan is Lock as a future. The channel receives exactly one [Result]: the lease, or the error. It is never
// closed. The receiver owns the lease from that moment.
//
// A lease that nobody has received is the client's, which renews it. It goes to another caller of this client
// at once, and to another client after a tenth of a second at most. The future stays pending meanwhile. Among the
// futures of a key, those that somebody receives from come first. A future that nobody has received from asks
// again after a pause, which grows from 250 ms to 30 s while others want the key.
//
// So a select in a loop may call LockChan in each turn, and may be left at any time. Nobody has to receive. If
// ctx ends, the client closes or the store fails, a pending future ends with the error, which stays in the channel.
// With [WithWait](0), a future whose lease another caller took instead ends with [ErrHeld].
//
// No goroutine waits for the lease, so thousands may be pending. One whose channel nobody refers to any more ends
// sooner or later. There is one exception: a ctx of a
// type that is not from package context.
func (c *Client) LockChan(ctx context.Context, key string, options ...LockOption) <-chan Result {
	return c.future(newWaiter(ctx), key, options)
}

// future returns the channel of a future.
func (c *Client) future(w *waiter, key string, options []LockOption) <-chan Result {
	result := make(chan Result, 1)
	w.future = weaklyTo(result)
	c.lockInto(w, key, options)
	return result
}

// lockInto requests a key for a future. Its channel has room for the result.
func (c *Client) lockInto(w *waiter, key string, options []LockOption) {
	w.Future = true
	key = c.spell(key)
	settings, err := c.accept(w, key, options)
	if err != nil {
		c.refuse(w, key, err)
		return
	}
	if c.asksHooks() {
		c.ask(w, w.op(), key, settings)
	}
	caller := w.ctx.Done()
	cancel := w.boundWait(settings.wait)
	if w.Stage == machine.Joining {
		if g, ok := w.joinNow(bound{w.ctx.Done(), caller}); ok {
			if g != nil {
				w.state.shard.arm(w.ctx, g, cancel)
			}
			return
		}
	}
	if err := c.enqueueFuture(w, key, caller, cancel); err != nil {
		if cancel != nil {
			cancel()
		}
		c.refuse(w, key, err)
	}
}

// refuse ends a future that was never queued.
func (c *Client) refuse(w *waiter, key string, err error) {
	c.countFailed(w, key, err)
	w.state = nil // the error names the key
	w.Stage, w.Err = machine.Ended, &Error{w.op(), key, err}
	w.Send()
	w.asked().waited(w.Err)
}

// enqueueFuture is lock for LockChan: it does not wait, and watches the context. Caller is
// that of the context that the caller gave. Cancel, if not nil, ends the watched one.
func (c *Client) enqueueFuture(w *waiter, key string, caller <-chan struct{}, cancel context.CancelFunc) error {
	arrived, err := c.enqueue(w, key, bound{w.ctx.Done(), caller})
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

// A Result is the value that the channels of [Client.LockChan] and [Client.LockEach] yield: a lease, which is
// the receiver's, or an error. The zero Result is none.
type Result struct {
	waiter *waiter
}

// Key returns the key that was requested.
func (r Result) Key() string {
	w := r.waiter
	switch {
	case w == nil:
		return ""
	case w.state != nil:
		return w.state.machine.Name
	}
	var refused *Error // before it was queued
	errors.As(w.Err, &refused)
	return refused.Key
}

// Lease returns the lease, which is the caller's since it has received the Result. The error is that of
// [Client.Lock], or [ErrLost] if the lease has ended before this call. Every call returns the same answer.
func (r Result) Lease() (*Lease, error) {
	w := r.waiter
	if w == nil {
		return nil, fmt.Errorf("%w: the zero Result", ErrInvalidOption)
	}
	defer w.each.received(w)
	if w.state == nil {
		return nil, w.Err // refused before it was queued
	}
	l, err, decided := w.look()
	if err != nil {
		err = &Error{w.op(), w.state.machine.Name, err}
	}
	w.asked().looked(l, err, decided)
	return l, err
}

// look tells the machine that the result was received, and returns it. Decided reports whether it was open until now.
func (w *waiter) look() (l *Lease, err error, decided bool) {
	s := w.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	decided = w.Stage == machine.Lying
	a := w.asked()
	if a != nil {
		a.looking = true
	}
	st := s.stepNow()
	s.machine.Received(&w.Waiter, &st)
	s.carryOutLocked(&st)
	if a != nil {
		a.looking = false
	}
	return w.lease(), w.Err, decided
}
