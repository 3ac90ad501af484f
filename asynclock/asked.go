// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"sync"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/watchdog"
)

// An asked is what hooks are told of a request. A nil one is that of a client without hooks.
type asked struct {
	hooks   *hooks
	begun   int             // how many of the hooks were told that it begins
	ctx     context.Context //nolint:containedctx // of Wait
	request Request
	since   watchdog.Instant
	had     bool // its caller has had a lease, by this way
	way     machine.Way
	blocker int64
	looking bool      // the caller of a future looks at the result just now, and tells what is decided
	once    sync.Once // Hold was called
}

// asksHooks reports whether a request that begins now is told of. A client that is closed refuses it anyway.
func (c *Client) asksHooks() bool { return c.hooks != nil && !c.hooks.closed.Load() }

// ask calls Wait. The request is made with the context of what it returns.
func (h *hooks) ask(ctx context.Context, request Request) *asked {
	a := &asked{hooks: h, ctx: ctx, request: request, since: watchdog.Refresh()}
	returned := false
	defer func() {
		if !returned {
			a.waited(ErrOutcomeUnknown) // for those before the one that panics
		}
	}()
	for _, hook := range h.all() {
		if hook.Wait != nil {
			a.ctx = withValues(a.ctx, hook.Wait(a.ctx, WaitEvent{request})) //nolint:fatcontext // each has that of the one before
		}
		a.begun++
	}
	returned = true
	return a
}

// ask calls Wait for w.
func (c *Client) ask(w *waiter, op, key string, settings *lockSettings) {
	a := c.hooks.ask(w.ctx, Request{Op: op, Key: key, Class: settings.className(), Mode: w.mode, Future: w.Future})
	if w.origin == nil {
		w.origin = new(origin)
	}
	w.origin.asked, w.ctx = a, a.ctx
}

// ask calls Wait for several keys.
func (a *gatherer) ask() {
	if !a.client.asksHooks() {
		return
	}
	a.asked = a.client.hooks.ask(a.ctx, Request{
		Op: a.op, Key: a.keys[0], Keys: a.keys, Class: a.settings.className(), Mode: Exclusive, Future: a.future,
	})
	a.ctx = a.asked.ctx
}

// asked returns what hooks are told of the waiter's request, or nil.
func (w *waiter) asked() *asked {
	if w.origin == nil {
		return nil
	}
	return w.origin.asked
}

// decided notes what w has come to. That of a future is told later, because the caller holds a mutex.
func (a *asked) decided(w *waiter, outcome counter, blocker int64) {
	if a == nil {
		return
	}
	a.had, a.way, a.blocker = w.Had, w.Way, blocker
	if w.Future && !a.looking {
		var err error
		if w.Err != nil {
			err = &Error{a.request.Op, a.request.Key, w.Err}
		}
		e := a.event(outcome, err)
		a.hooks.later(func() { a.tell(e) })
	}
}

// waited calls Waited.
func (a *asked) waited(err error) {
	if a != nil {
		a.tell(a.event(a.outcome(err), err))
	}
}

// waitedLater is waited on the other goroutine.
func (a *asked) waitedLater(err error) {
	if a != nil {
		e := a.event(a.outcome(err), err)
		a.hooks.later(func() { a.tell(e) })
	}
}

func (a *asked) outcome(err error) counter {
	if err == nil || a.had { // it may have ended before its caller looked
		return acquired + counter(a.way)
	}
	return outcomeOf(err)
}

func (a *asked) event(outcome counter, err error) WaitedEvent {
	e := WaitedEvent{
		Request: a.request, Outcome: nameOf(outcome), Err: err, Waited: watchdog.Refresh().Sub(a.since), Blocker: a.blocker,
	}
	if outcome >= acquired {
		e.Outcome, e.Way = outcomeAcquired, e.Outcome
	}
	return e
}

func (a *asked) tell(e WaitedEvent) {
	var held *HeldError
	if e.Blocker == 0 && errors.As(e.Err, &held) {
		e.Blocker = held.Token
	}
	for _, hook := range a.hooks.all()[:a.begun] {
		if hook.Waited != nil {
			hook.Waited(a.ctx, e)
		}
	}
}

// begin tells of the lease that a call has come to.
func (a *asked) begin(l *Lease) {
	orUnlock(l, func() {
		a.waited(nil)
		l.begins(a)
	})
}

// looked tells of what a future has come to, when its caller looks. Decided says that it was decided just now.
func (a *asked) looked(l *Lease, err error, decided bool) {
	switch {
	case a == nil:
	case err == nil:
		orUnlock(l, func() {
			if decided {
				a.waited(nil)
			}
			a.once.Do(func() { l.begins(a) })
		})
	case decided:
		a.waited(err)
	}
}

// beginAll is begin for several keys.
func (a *asked) beginAll(g *gatherer) {
	orUnlock(g.lease, func() {
		a.waited(nil)
		g.begins()
	})
}

// lookedAll is looked for several keys.
func (a *asked) lookedAll(g *gatherer, err error, decided bool) {
	switch {
	case err == nil:
		orUnlock(g.lease, func() {
			if decided {
				a.waited(nil)
			}
			a.once.Do(g.begins)
		})
	case decided:
		a.waited(err)
	}
}
