// SPDX-License-Identifier: Apache-2.0

package asynclock

import "context"

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
	for ; lc != nil; lc = lc.outer {
		if l := lc.lease; l.state.client == c && l.state.key == key && l.shared() {
			return l
		}
	}
	return nil
}

// shared reports whether the holding that l belongs or belonged to still lasts.
func (l *Lease) shared() bool {
	l.checkDeadline(0)
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return l.wholeLocked() != nil
}

// wholeLocked returns the lease that stands for the whole holding, or nil if the holding is over.
func (l *Lease) wholeLocked() *Lease {
	if l.first != nil {
		l = l.first
	}
	if h := l.state.holding; h == nil || h.lease != l {
		return nil // lost, or unlocked by all its holders
	}
	return l
}

// joinLocked returns a new lease that shares the holding, or nil if the holding is over. The store
// does not know the new lease: the key is released when the last lease of the holding is unlocked,
// in any order.
func (l *Lease) joinLocked(ctx context.Context) *Lease {
	whole := l.wholeLocked()
	if whole == nil {
		return nil
	}
	j := &Lease{
		state: whole.state, token: whole.token, owner: whole.owner, uncertain: whole.uncertain, settings: whole.settings,
		first: whole, claimed: whole.claimed, parent: ctx,
	}
	j.earlier, whole.joiner = whole.joiner, j
	return j
}

// markUnlockedLocked records that this lease was unlocked. It reports whether this was the last of
// the leases that share the holding.
func (l *Lease) markUnlockedLocked() bool {
	l.unlocked = true
	whole := l
	if l.first != nil {
		whole = l.first
		at := &whole.joiner
		for *at != l {
			at = &(*at).earlier
		}
		*at = l.earlier
	}
	return whole.unlocked && whole.joiner == nil
}
