// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Re-entry works by context. Goroutines have no identity that a lock could belong to. They would
// also be the wrong unit if one goroutine starts the work and another finishes it. A context names
// the work itself.

// innermost is the context key for the lease that a context was made under.
type innermost struct{}

// A leaseContext ends with a lease and remembers it.
type leaseContext struct {
	context.Context //nolint:containedctx // it is one

	lease  *Lease
	outer  *leaseContext // the context that this one was made under; nil if none
	cancel context.CancelCauseFunc

	announced atomic.Bool // the end of the lease will be announced
}

func newLeaseContext(parent context.Context, l *Lease) *leaseContext {
	ctx, cancel := context.WithCancelCause(parent)
	outer, _ := parent.Value(innermost{}).(*leaseContext)
	return &leaseContext{Context: ctx, lease: l, outer: outer, cancel: cancel}
}

// Value returns the context itself for the key innermost.
func (c *leaseContext) Value(key any) any {
	if key == (innermost{}) {
		return c
	}
	return c.Context.Value(key)
}

// under returns the lease of the key that ctx was made under, or nil if there is
// none that still lasts.
func (c *Client) under(ctx context.Context, key string) *Lease {
	lc, _ := ctx.Value(innermost{}).(*leaseContext)
	return lc.leaseOf(c, key)
}

// leaseOf returns the client's lease of the key that c or a context outside it belongs to, or nil if
// there is none that still lasts.
func (c *leaseContext) leaseOf(client *Client, key string) *Lease {
	for ; c != nil; c = c.outer {
		l := c.lease
		if l.state.shard.client == client && l.state.machine.Name == key && l.core.Reentry && l.lasts() {
			return l
		}
	}
	return nil
}

// LeaseFrom returns the innermost lease of the key that ctx was made under: by [Client.WithLock],
// [Client.WithLockAll], [Do], [Lease.Context] or [MultiLease.Context]. It is how code deep below finds the token. The lease may have ended
// meanwhile; [Lease.Valid] tells. LeaseFrom reports false if there is no such lease, or ctx is nil.
func LeaseFrom(ctx context.Context, key string) (*Lease, bool) {
	if ctx == nil {
		return nil, false
	}
	lc, _ := ctx.Value(innermost{}).(*leaseContext)
	for ; lc != nil; lc = lc.outer {
		if lc.lease.state.machine.Name == key {
			return lc.lease, true
		}
	}
	return nil, false
}

// canJoin returns an error if a request has options that a lease it joins can't have, because the
// lease shares a holding that was made with others.
func (s *lockSettings) canJoin(held *machine.Terms) error {
	if held.Mode != Exclusive && held.Mode != s.Mode {
		return ErrUpgrade
	}
	for _, o := range []struct {
		given given
		equal bool
		name  string
	}{
		{givenTTL, s.TTL == held.TTL, "WithTTL"},
		{givenMaxHold, s.MaxHold == held.MaxHold, "WithMaxHold"},
		{givenMinHold, s.MinHold == held.MinHold, "WithMinHold"},
		{givenRetention, s.Retention == held.Retention, "WithRetention"},
		{givenRenewal, s.Renew == held.Renew, "WithRenewal"},
		{givenDescription, s.Holder == held.Holder, "WithDescription"},
	} {
		if s.given&o.given != 0 && !o.equal {
			return fmt.Errorf("%w: %s differs from that of the lease to join", ErrInvalidOption, o.name)
		}
	}
	return nil
}

// canTakePermits returns an error for a request of permits under a lease of the same key that excludes
// them. Permits under others are no re-entry.
func canTakePermits(held *machine.Terms) error {
	if held.Mode != Permits {
		return ErrUpgrade
	}
	return nil
}

// lasts reports whether the holding that l belongs or belonged to still lasts.
func (l *Lease) lasts() bool {
	s := l.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	now := watchdog.Refresh()
	var fx machine.Effects
	lasts := s.machine.Lasts(&l.core, now, &fx)
	s.carryOutLocked(&fx, now)
	return lasts
}

// join makes w a waiter that will join l.
func (w *waiter) join(l *Lease) {
	w.state, w.Lease, w.Stage = l.state, &l.core, machine.Joining
}

// joinFuture lets a future join the lease that its context was made under. It reports false if the
// lease has ended by now; then the future is to queue like any other. Cancel, if not nil, ends the
// future's context.
func (w *waiter) joinFuture(cancel context.CancelFunc) bool {
	sh := w.state.shard
	g, ok := sh.joinLater(w)
	if g != nil {
		sh.arm(w.ctx, g, cancel)
	}
	return ok
}

// joinLater is joinFuture without the watch, which it returns if it has to be armed.
func (sh *shard) joinLater(w *waiter) (*watch, bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !w.state.machine.JoinLater(&w.Waiter) {
		return nil, false
	}
	g := sh.watchLocked(w, w.ctx.Done())
	w.sendLocked()
	return g, true
}

// takeBackLocked takes the waiter's result out of its channel. It reports whether it was still
// there. The channel may have results of other waiters too. It has room for all of them.
func (w *waiter) takeBackLocked() (found bool) {
	takingBack := &w.state.shard.client.takingBack // two at a time would hold each other's results
	takingBack.Lock()
	defer takingBack.Unlock()
	for range len(w.result) { // all of them, so that their order stays
		select {
		case r := <-w.result:
			if r.waiter == w {
				found, w.sent = true, false
				continue
			}
			w.result <- r
		default:
			return found
		}
	}
	return found
}
