// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A hold is what hooks are told of a lease. A nil one is that of a client without hooks.
type hold struct {
	hooks *hooks
	begun int             // how many of the hooks were told that it begins
	ctx   context.Context //nolint:containedctx // of Hold
	event HeldEvent
	since watchdog.Instant
}

// newHold calls Hold.
func (a *asked) newHold(token int64) *hold {
	h := &hold{hooks: a.hooks, ctx: a.ctx, event: HeldEvent{Request: a.request, Token: token}, since: watchdog.Refresh()}
	returned := false
	defer func() {
		if !returned { // those before the one that panics are told of its end
			h.ends(ErrUnlocked)
			h.tell()
		}
	}()
	e := HoldEvent{Request: a.request, Token: token, Way: nameOf(acquired + counter(a.way))}
	for _, hook := range h.hooks.all()[:a.begun] {
		if hook.Hold != nil {
			h.ctx = withValues(h.ctx, hook.Hold(h.ctx, e)) //nolint:fatcontext // each has that of the one before
		}
		h.begun++
	}
	returned = true
	return h
}

// begins calls Hold. The lease may have ended meanwhile.
func (l *Lease) begins(a *asked) {
	h := a.newHold(l.core.Token)
	sh := l.state.shard
	sh.mu.Lock()
	l.moreLocked().hold = h
	if l.madeLocked() == nil {
		l.context = h.values(l.context)
	}
	ended := l.core.Err
	sh.mu.Unlock()
	if ended != nil {
		h.ends(ended)
		h.tell()
	}
}

// begins calls Hold for several keys.
func (a *gatherer) begins() {
	m := a.lease
	h := a.asked.newHold(m.parts[0].core.Token)
	a.heldValues.become(h.ctx)
	m.mu.Lock()
	m.hold = h
	ended := m.err
	m.mu.Unlock()
	if ended != nil {
		h.ends(ended)
		h.tell()
	}
}

// downgradeAsked returns what hooks are told of a downgrade's request. Nobody waits for it.
func (l *Lease) downgradeAsked(ctx context.Context, writer *hold) *asked {
	request := Request{Op: "downgrade", Key: l.Key(), Mode: Shared}
	if writer != nil { // it is none of several keys
		request.Class = writer.event.Class
	}
	hooks := l.state.shard.client.hooks
	return &asked{hooks: hooks, begun: len(hooks.all()), ctx: ctx, request: request, way: machine.WayDowngraded}
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

// ends notes why the lease has ended. It is called once.
func (h *hold) ends(reason error) {
	h.event.End, h.event.Err, h.event.Held = nameOf(endOf(reason)), reason, watchdog.Refresh().Sub(h.since)
}

// tell calls Held, once the lease has ended.
func (h *hold) tell() {
	if h == nil {
		return
	}
	for _, hook := range h.hooks.all()[:h.begun] {
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
	return withValues(ctx, h.ctx)
}
