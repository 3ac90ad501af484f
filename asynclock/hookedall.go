// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"sync/atomic"
)

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

// beginAll is begin for several keys.
func (a *asked) beginAll(g *gatherer) {
	returned := false
	defer func() {
		if !returned {
			g.lease.UnlockChan(context.Background())
		}
	}()
	a.waited(nil)
	g.begins()
	returned = true
}

// holdAll is hold for several keys.
func (a *asked) holdAll(g *gatherer) {
	if a != nil {
		a.once.Do(g.begins)
	}
}

// begins calls Hold.
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

// A laterValues has the values of a context that is known later.
type laterValues struct {
	context.Context //nolint:containedctx // until then

	later atomic.Pointer[context.Context]
}

func (v *laterValues) become(ctx context.Context) { v.later.Store(&ctx) }

func (v *laterValues) Value(key any) any {
	if ctx := v.later.Load(); ctx != nil {
		return (*ctx).Value(key)
	}
	return v.Context.Value(key)
}
