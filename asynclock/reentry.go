// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
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
	return &leaseContext{Context: ctx, lease: l, outer: leaseContextOf(parent), cancel: cancel}
}

// leaseContextOf returns the innermost leaseContext that ctx is or was made from, or nil.
func leaseContextOf(ctx context.Context) *leaseContext {
	c, _ := ctx.Value(innermost{}).(*leaseContext)
	return c
}

// Value returns the context itself for the key innermost.
func (c *leaseContext) Value(key any) any {
	if key == (innermost{}) {
		return c
	}
	return c.Context.Value(key)
}

// leaseOf returns the client's lease of the key that c or a context outside it belongs to, or nil if
// there is none that still lasts. A request with re-entry may join the holding of one that has ended,
// as long as others share it.
func (c *leaseContext) leaseOf(client *Client, key string, reentry bool) *Lease {
	for ; c != nil; c = c.outer {
		if !c.lease.isOf(client, key) {
			continue
		}
		if l := c.lease.inEffect(reentry); l != nil {
			return l
		}
	}
	return nil
}

// isOf reports whether l is the client's lease of the key.
func (l *Lease) isOf(client *Client, key string) bool {
	return l.state.shard.client == client && l.state.machine.Name == client.spell(key)
}

// LeaseFrom returns the innermost lease of the key that ctx was made under: by [Client.WithLock],
// [Client.WithLockAll], [Do], [Lease.Context] or [MultiLease.Context]. It is how code deep below finds the token. The lease may have ended
// meanwhile; [Lease.Valid] tells. LeaseFrom reports false if there is no such lease, or ctx is nil. It also does so if
// leases of several clients have that key, because their tokens have nothing in common: then use [Client.LeaseFrom].
func LeaseFrom(ctx context.Context, key string) (*Lease, bool) {
	if ctx == nil {
		return nil, false
	}
	var found *Lease
	for lc := leaseContextOf(ctx); lc != nil; lc = lc.outer {
		switch l := lc.lease; {
		case !l.isOf(l.state.shard.client, key):
		case found == nil:
			found = l
		case found.state.shard.client != l.state.shard.client:
			return nil, false
		}
	}
	return found, found != nil
}

// LeaseFrom is [LeaseFrom] for leases of this client.
func (c *Client) LeaseFrom(ctx context.Context, key string) (*Lease, bool) {
	if ctx == nil {
		return nil, false
	}
	for lc := leaseContextOf(ctx); lc != nil; lc = lc.outer {
		if lc.lease.isOf(c, key) {
			return lc.lease, true
		}
	}
	return nil, false
}

// mayNest returns an error if a request may not be made under a lease of the same key. It would wait for
// that lease, and so possibly for its own caller. A request that joins may not have options that the lease
// can't have, because the lease shares a holding that was made with others.
func (s *lockSettings) mayNest(held *machine.Terms) error {
	switch {
	case s.Mode == Permits && held.Mode == Permits:
		return nil // there may be enough for both
	case s.Mode == Permits, held.Mode != Exclusive && held.Mode != s.Mode:
		return ErrUpgrade
	case !s.reentry:
		return ErrReentry
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

// inEffect returns l, or the reader's lease that [Lease.Downgrade] made of it, or nil if that has ended. Joinable
// says that it counts as long as the holding lasts that it belongs or belonged to.
func (l *Lease) inEffect(joinable bool) *Lease {
	s := l.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	if l.more != nil && l.more.reader != nil {
		l = &l.more.reader.own
	}
	st := s.stepNow()
	lasts := s.machine.Lasts(&l.core, &st)
	s.carryOutLocked(&st)
	if !lasts || !joinable && l.core.Err != nil {
		return nil
	}
	return l
}

// join makes w a waiter that will join l.
func (w *waiter) join(l *Lease) {
	w.state, w.Lease, w.Stage = l.state, &l.core, machine.Joining
}

// joinNow shares the lease that w is to join. It reports false if that has ended by now; then w is to queue
// like any other. The bound of a future may need a watch to be armed.
func (w *waiter) joinNow(b bound) (g *watch, ok bool) {
	s := w.state
	st := s.begin()
	defer s.end(&st)
	g = s.shard.watchLocked(w, b)
	if ok = s.machine.Join(&w.Waiter, &st); ok {
		w.countLocked(requested)
	} else {
		s.shard.unwatchLocked(w) // others have the watch, or nobody has armed it
		w.state, w.Stage, w.Lease = nil, machine.Queued, nil
	}
	return g, ok
}
