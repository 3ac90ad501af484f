// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

var (
	errNilKeys = fmt.Errorf("%w: nil iterator of keys", ErrInvalidOption)
	errWindow  = fmt.Errorf("%w: WithWindow is for LockEach", ErrInvalidOption)
)

// LockEach is [Client.LockChan] for many keys that share one channel. Each key is requested by itself. The channel
// receives exactly one Result for each key, in the order in which they come. [Result.Key] tells them apart. It is
// closed when the iterator is over and [Result.Lease] was called of all of them. So several workers may range over it.
//
// The keys are requested at the pace of the receivers: as many as [WithWindow] says at first, and another one for each
// Result whose Lease was called. So there may be any number of keys, and the work may take any time. A key that is
// yielded twice is requested twice.
//
// A goroutine calls the iterator, which may wait for its next key, as for a message of a queue. It stops when ctx ends or
// the client closes: no key is requested any more, and yield returns false. If the iterator was not over by then, the
// channel also receives a Result without a key, which has the reason. So does it if the iterator panics or ends
// its goroutine, and at once for a bad option. Close does not wait for an iterator that does not return.
//
// Leases that are received one by one are held at the same time. A caller that waits for one key while it holds another
// may block others that do so in another order. A caller that loses interest has to end ctx.
func (c *Client) LockEach(ctx context.Context, keys iter.Seq[string], options ...LockOption) <-chan Result {
	e, err := c.newEach(ctx, keys, options)
	if err != nil {
		return refusedEach(err)
	}
	go e.iterate(keys)   // ends when the iterator returns; nobody waits for it, because it is the caller's
	go e.end(ctx.Done()) // ends then, and with ctx or Close
	return e.results
}

// An each is a call of LockEach.
type each struct {
	client   *Client
	ctx      context.Context //nolint:containedctx // of all its waiters
	settings *lockSettings   // of all of them
	origin   *origin         // likewise
	results  chan Result     // has room for all that were requested and not looked at, and for one more

	mu      sync.Mutex // nothing else is locked under it; two that take back would hold each other's results
	room    sync.Cond  // somebody has looked at a result, or no key is requested any more
	pending int        // how many results nobody has looked at, those to come included
	over    bool       // no key is requested any more
	stopped chan struct{}
}

func (c *Client) newEach(ctx context.Context, keys iter.Seq[string], options []LockOption) (*each, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	if keys == nil {
		return nil, errNilKeys
	}
	settings, err := c.settings.lock.apply(options)
	if err = cmp.Or(err, waitEnded(ctx)); err != nil {
		return nil, err
	}
	c.retentionFor(&settings)
	e := &each{
		client: c, ctx: ctx, settings: &settings, origin: c.leaks.origin(),
		results: make(chan Result, settings.window+1), stopped: make(chan struct{}),
	}
	e.room.L = &e.mu
	return e, nil
}

// refusedEach returns the channel of a call that requests nothing.
func refusedEach(err error) <-chan Result {
	results := make(chan Result, 1)
	results <- Result{waiter: &waiter{Waiter: machine.Waiter{Err: &Error{"lock", "", err}}}}
	close(results)
	return results
}

// iterate calls the iterator.
func (e *each) iterate(keys iter.Seq[string]) {
	ended := errIteratorExit // unless it returns or panics
	defer func() {
		if value := recover(); value != nil {
			ended = &panicError{value: value, where: siteOf(callers())}
		}
		e.stop(ended)
	}()
	keys(e.yield)
	ended = waitEnded(e.ctx)
}

// yield requests a key, and returns when there is room for another one. It reports false if none is wanted.
func (e *each) yield(key string) bool {
	if !e.awaitRoom(1) {
		return false
	}
	e.request(key)
	return e.awaitRoom(0)
}

// awaitRoom waits until there is room in the window, and takes n places of it.
func (e *each) awaitRoom(n int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.over && e.pending >= int(e.settings.window) {
		e.room.Wait()
	}
	if !e.over {
		e.pending += n
	}
	return !e.over
}

// request requests a key that has its place.
func (e *each) request(key string) {
	w := newWaiter(e.ctx)
	w.each, w.origin = e, e.origin.again()
	returned := false
	defer func() {
		if !returned && !w.sent && (w.state == nil || w.Stage == machine.Joining) {
			w.state = nil // the context has panicked
			e.client.refuse(w, key, ErrOutcomeUnknown)
		}
	}()
	e.client.lockInto(w, key, nil)
	returned = true
}

// end stops the requests when the context ends or the client closes.
func (e *each) end(done <-chan struct{}) {
	select {
	case <-done:
		e.stop(waitEnded(e.ctx))
	case <-e.client.closing.begun:
		e.stop(ErrClosed)
	case <-e.stopped:
	}
}

// stop says that no key is requested any more. Reason, if not nil, is why there may be more keys.
func (e *each) stop(reason error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return
	}
	e.over = true
	close(e.stopped)
	e.room.Broadcast()
	if reason != nil {
		e.pending++
		e.results <- Result{waiter: &waiter{Waiter: machine.Waiter{Err: &Error{"lock", "", reason}}, each: e}}
	}
	e.closeIfDone()
}

// closeIfDone closes the channel after the last look at a result. Nothing of what was looked at is sent or taken back.
func (e *each) closeIfDone() {
	if e.over && e.pending == 0 {
		close(e.results)
	}
}

// received is called when somebody looks at the result of w.
func (e *each) received(w *waiter) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.counted {
		return
	}
	w.counted = true
	e.pending--
	e.room.Signal()
	e.closeIfDone()
}

// send puts the result of w into the channel. It reports whether somebody has received it at once.
func (e *each) send(w *waiter) (received bool) {
	e.mu.Lock() // taking back empties the channel for a moment
	defer e.mu.Unlock()
	e.results <- Result{waiter: w}
	return len(e.results) == 0
}

// lies reports whether the result of w is in the channel.
func (e *each) lies(w *waiter) (found bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
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
	e.mu.Lock()
	defer e.mu.Unlock()
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

// errIteratorExit is why no further key is requested if the iterator neither returns nor panics.
var errIteratorExit = errors.New("the iterator of keys has called runtime.Goexit")

// A panicError is a panic of the caller's iterator. On a goroutine of ours, nobody else could recover it, and it would
// end the process.
type panicError struct {
	value any
	where string
}

// Error shows what the runtime says of a mistake, and of other values the type only: they may have secrets.
func (e *panicError) Error() string {
	text := fmt.Sprintf("%T", e.value)
	if mistake, ok := e.value.(runtime.Error); ok {
		text = mistake.Error()
	}
	return "the iterator of keys panicked at " + e.where + ": " + text
}
