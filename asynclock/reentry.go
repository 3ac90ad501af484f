// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"slices"
)

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

// join returns a new lease that shares the holding of the key that ctx was made
// under, or nil if there is none that still lasts.
func (c *Client) join(ctx context.Context, key string) *Lease {
	lc, _ := ctx.Value(innermost{}).(*leaseContext)
	for ; lc != nil; lc = lc.outer {
		if l := lc.lease; l.state.client == c && l.state.key == key {
			if joined := l.join(ctx); joined != nil {
				return joined
			}
		}
	}
	return nil
}

// join adds one to the holding. It has no part in the store: the key is
// released when the last of them is unlocked, in any order.
func (l *Lease) join(ctx context.Context) *Lease {
	if l.first != nil {
		l = l.first
	}
	l.judge(0)
	s := l.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	if s.tenure == nil || s.tenure.lease != l {
		return nil // lost, or unlocked by all its holders
	}
	j := &Lease{state: s, token: l.token, owner: l.owner, first: l, claimed: l.claimed, parent: ctx}
	l.joiners = append(l.joiners, j)
	return j
}

// partLocked ends this lease's share of the holding and reports whether it was
// the last.
func (l *Lease) partLocked() bool {
	l.endLocked(ErrUnlocked)
	whole := l
	if l.first != nil {
		whole = l.first
		whole.joiners = slices.DeleteFunc(whole.joiners, func(j *Lease) bool { return j == l })
	}
	return whole.err != nil && len(whole.joiners) == 0
}
