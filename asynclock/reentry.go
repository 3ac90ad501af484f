// SPDX-License-Identifier: Apache-2.0

package asynclock

import "context"

// Re-entry is by context. Goroutines have no identity to tie a lock to, and in
// code where one goroutine starts what another finishes they would be the wrong
// one; a context names the work itself.

// innermost is the context key for the lease that a context was made under.
type innermost struct{}

// A leaseContext ends with a lease and remembers it.
type leaseContext struct {
	context.Context //nolint:containedctx // it is one

	lease  *Lease
	outer  *leaseContext // that this one was made under; nil if none
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

// shared reports whether the holding that l has or had a part in still lasts.
func (l *Lease) shared() bool {
	l.checkDeadline(0)
	sh := l.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return l.wholeLocked() != nil
}

// wholeLocked returns the lease that stands for the whole holding, or nil if
// that is over.
func (l *Lease) wholeLocked() *Lease {
	if l.first != nil {
		l = l.first
	}
	if h := l.state.holding; h == nil || h.lease != l {
		return nil // lost, or unlocked by all its holders
	}
	return l
}

// joinLocked returns a new lease that shares the holding, or nil if that is
// over. It has no part in the store: the key is released when the last of them
// is unlocked, in any order.
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

// markUnlockedLocked notes that this lease was unlocked, and reports whether it was the
// last of those that share the holding.
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
