// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/batch"
	"github.com/asynclock/asynclock-go/watchdog"
)

// maxHooksWaiting is how many calls of hooks may wait for the goroutine that makes them.
const maxHooksWaiting = 10_000

// hooks are those of a client. Nil hooks are called by nobody.
type hooks struct {
	all []Hooks

	calls   *batch.Queue[func()] // on the other goroutine
	waiting atomic.Int64
	leftOut atomic.Int64
	closed  atomic.Bool
}

func newHooks(all []Hooks) *hooks {
	if len(all) == 0 {
		return nil
	}
	h := &hooks{all: all}
	h.calls = batch.New(maxHooksWaiting, 1, 0, func(_ int, calls []func()) {
		for _, call := range calls {
			h.waiting.Add(-1)
			call()
		}
	})
	return h
}

// later calls the function on the other goroutine. It may be called under any mutex.
func (h *hooks) later(call func()) {
	if h.waiting.Add(1) > maxHooksWaiting {
		h.waiting.Add(-1)
		h.leftOut.Add(1)
		return
	}
	if !h.calls.Add(0, call) { // the client is closed
		h.leftOut.Add(1)
	}
}

func (h *hooks) close() {
	if h != nil {
		h.closed.Store(true)
		h.calls.Close()
	}
}

func (h *hooks) numberLeftOut() int64 {
	if h == nil {
		return 0
	}
	return h.leftOut.Load()
}

// An asked is what hooks are told of a request. A nil one is that of a client without hooks.
type asked struct {
	hooks   *hooks
	ctx     context.Context //nolint:containedctx // of Wait
	request Request
	since   watchdog.Instant
	way     machine.Way
	blocker int64
	looking bool      // the caller of a future looks at the result just now, and tells what is decided
	once    sync.Once // Hold was called
}

// ask calls Wait. The request is made with the context of what it returns.
func (h *hooks) ask(ctx context.Context, request Request) *asked {
	since := watchdog.Refresh()
	for _, hook := range h.all {
		if hook.Wait != nil {
			ctx = orElse(hook.Wait(ctx, WaitEvent{request}), ctx) //nolint:fatcontext // each hook has that of the one before
		}
	}
	return &asked{hooks: h, ctx: ctx, request: request, since: since}
}

// asksHooks reports whether a request that begins now is told of. A client that is closed refuses it anyway.
func (c *Client) asksHooks() bool { return c.hooks != nil && !c.hooks.closed.Load() }

// ask calls Wait for w.
func (c *Client) ask(w *waiter, op, key string, settings *lockSettings) {
	if w.origin == nil {
		w.origin = new(origin)
	}
	w.origin.asked = c.hooks.ask(w.ctx, Request{Op: op, Key: key, Class: settings.className(), Mode: w.mode, Future: w.Future})
	w.ctx = w.origin.asked.ctx
}

// asked returns what hooks are told of the waiter's request, or nil.
func (w *waiter) asked() *asked {
	if w.origin == nil {
		return nil
	}
	return w.origin.asked
}

// decided notes how w has come to its lease. That of a future is told later, because the caller holds a mutex.
func (a *asked) decided(w *waiter, blocker int64) {
	if a == nil {
		return
	}
	a.way, a.blocker = w.Way, blocker
	switch {
	case !w.Future || a.looking:
	case w.Err != nil:
		a.waitedLater(&Error{a.request.Op, a.request.Key, w.Err})
	default:
		a.waitedLater(nil)
	}
}

// downgradeAsked returns what hooks are told of a downgrade's request. Nobody waits for it.
func (l *Lease) downgradeAsked(ctx context.Context, writer *hold) *asked {
	request := Request{Op: "downgrade", Key: l.Key(), Mode: Shared}
	if writer != nil { // it is none of several keys
		request.Class = writer.event.Class
	}
	return &asked{hooks: l.state.shard.client.hooks, ctx: ctx, request: request, way: machine.WayDowngraded}
}

func orElse(ctx, otherwise context.Context) context.Context {
	if ctx == nil {
		return otherwise
	}
	return ctx
}

// waited calls Waited.
func (a *asked) waited(err error) {
	if a != nil {
		a.tell(a.event(err))
	}
}

// waitedLater is waited for a caller that holds a mutex.
func (a *asked) waitedLater(err error) {
	if a != nil {
		e := a.event(err)
		a.hooks.later(func() { a.tell(e) })
	}
}

func (a *asked) event(err error) WaitedEvent {
	e := WaitedEvent{Request: a.request, Err: err, Waited: watchdog.Refresh().Sub(a.since), Blocker: a.blocker}
	if err == nil || errors.Is(err, ErrLost) { // it was received, and has ended before its caller looked
		e.Outcome, e.Way = outcomeAcquired, nameOf(acquired+counter(a.way))
	} else {
		e.Outcome = nameOf(outcomeOf(err))
	}
	return e
}

func (a *asked) tell(e WaitedEvent) {
	for _, hook := range a.hooks.all {
		if hook.Waited != nil {
			hook.Waited(a.ctx, e)
		}
	}
}

// A hold is what hooks are told of a lease.
type hold struct {
	hooks *hooks
	ctx   context.Context //nolint:containedctx // of Hold
	event HeldEvent
	since watchdog.Instant
}

// begin tells of the lease that a call has come to. If a hook panics, nobody else unlocks the lease.
func (a *asked) begin(l *Lease) {
	returned := false
	defer func() {
		if !returned {
			l.UnlockChan(context.Background())
		}
	}()
	a.waited(nil)
	l.begins(a)
	returned = true
}

// looked tells of what a future has come to, when its caller looks. Decided says that it was decided just now.
func (a *asked) looked(l *Lease, err error, decided bool) {
	if a == nil {
		return
	}
	if decided {
		a.waited(err)
	}
	if err == nil {
		a.once.Do(func() { l.begins(a) })
	}
}

// begins calls Hold. The lease may have ended meanwhile.
func (l *Lease) begins(a *asked) {
	h := a.newHold(l.core.Token)
	sh := l.state.shard
	sh.mu.Lock()
	l.moreLocked().hold = h
	if l.madeLocked() == nil {
		l.context = h.ctx
	}
	ended := l.core.Err
	sh.mu.Unlock()
	if ended != nil {
		h.ends(ended)
		h.tell()
	}
}

// holdLocked returns what hooks are told of the lease, or nil.
func (l *leaseCore) holdLocked() *hold {
	if l.more == nil {
		return nil
	}
	return l.more.hold
}

func (l *leaseCore) hold() *hold {
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return l.holdLocked()
}

// newHold calls Hold.
func (a *asked) newHold(token int64) *hold {
	h := &hold{hooks: a.hooks, ctx: a.ctx, event: HeldEvent{Request: a.request, Token: token}}
	e := HoldEvent{Request: a.request, Token: token, Way: nameOf(acquired + counter(a.way))}
	for _, hook := range a.hooks.all {
		if hook.Hold != nil {
			h.ctx = orElse(hook.Hold(h.ctx, e), h.ctx) //nolint:fatcontext // each hook has that of the one before
		}
	}
	h.since = watchdog.Refresh()
	return h
}

// ends notes why the lease has ended. It is called once.
func (h *hold) ends(reason error) {
	h.event.End, h.event.Err, h.event.Held = nameOf(endOf(reason)), reason, watchdog.Refresh().Sub(h.since)
}

// tell calls Held, once the lease has ended. Nil is told of nothing.
func (h *hold) tell() {
	if h == nil {
		return
	}
	for _, hook := range h.hooks.all {
		if hook.Held != nil {
			hook.Held(h.ctx, h.event)
		}
	}
}

// values returns ctx with the values of the context of Hold.
func (h *hold) values(ctx context.Context) context.Context {
	if h == nil {
		return ctx
	}
	return valuesContext{ctx, h.ctx}
}

// A valuesContext ends like one context, and has the values of another.
type valuesContext struct {
	context.Context //nolint:containedctx // the end

	values context.Context //nolint:containedctx // the values
}

func (c valuesContext) Value(key any) any { return c.values.Value(key) }

// called calls Called. A caller waits for the answer, or nobody does.
func (h *hooks) called(op string, began watchdog.Instant, byCaller bool, size int, errOf func(i int) error) {
	if h == nil {
		return
	}
	e := CalledEvent{Op: op, Size: size, Took: watchdog.Refresh().Sub(began)}
	for i := range size {
		if err := errOf(i); err != nil {
			if e.Failed++; e.Failed == 1 {
				e.Err = err
			}
		}
	}
	tell := func() {
		for _, hook := range h.all {
			if hook.Called != nil {
				hook.Called(e)
			}
		}
	}
	if byCaller {
		tell()
	} else {
		h.later(tell)
	}
}

// outcomeAcquired is the outcome of a request that has come to a lease.
const outcomeAcquired = "acquired"
