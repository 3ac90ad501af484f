// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"fmt"

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
		if l.state.client == client && l.state.key == key && l.settings.reentry && l.shared() {
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
		if lc.lease.state.key == key {
			return lc.lease, true
		}
	}
	return nil, false
}

// canJoin returns an error if a request has options that a lease it joins can't have, because the
// lease shares a holding that was made with others.
func (s *lockSettings) canJoin(held *lockSettings) error {
	for _, o := range []struct {
		given given
		equal bool
		name  string
	}{
		{givenTTL, s.ttl == held.ttl, "WithTTL"},
		{givenMaxHold, s.maxHold == held.maxHold, "WithMaxHold"},
		{givenMinHold, s.minHold == held.minHold, "WithMinHold"},
		{givenRetention, s.retention == held.retention, "WithRetention"},
		{givenRenewal, s.renew == held.renew, "WithRenewal"},
		{givenDescription, s.holder == held.holder, "WithDescription"},
	} {
		if s.given&o.given != 0 && !o.equal {
			return fmt.Errorf("%w: %s differs from that of the lease to join", ErrInvalidOption, o.name)
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
	whole.state.scheduleLocked() // it may not have been renewed any more; see wantedLocked
	return j
}

// joinFuture lets a future join the lease that its context was made under. The join counts only from
// the claim, so that an unclaimed future keeps nothing. JoinFuture reports false if the lease has
// ended by now; then the future is to queue like any other. Cancel, if not nil, ends the future's
// context.
func (w *waiter) joinFuture(cancel context.CancelFunc) bool {
	sh := w.state.shard
	sh.mu.Lock()
	whole := w.lease.wholeLocked()
	if whole == nil {
		w.stage, w.lease = queued, nil
		sh.mu.Unlock()
		return false
	}
	w.behind, whole.joiners = whole.joiners, w
	g := sh.watchLocked(w, w.ctx.Done())
	w.sendLocked()
	sh.mu.Unlock()
	if g != nil {
		sh.arm(w.ctx, g, cancel)
	}
	return true
}

// stopJoiningLocked removes a future from those that may join its lease.
func (w *waiter) stopJoiningLocked() {
	whole := w.lease.wholeLocked()
	if whole == nil || !w.future {
		return
	}
	at := &whole.joiners
	for *at != w {
		at = &(*at).behind
	}
	*at, w.behind = w.behind, nil
}

// queueJoinersLocked lets the unclaimed futures that would have joined the lease wait for the key
// instead, because the lease has ended. It fails those whose result the caller has received
// already.
func (s *keyState) queueJoinersLocked() {
	whole := s.holding.lease
	var first *waiter // the list has the last one first
	for w := whole.joiners; w != nil; {
		next := w.behind
		w.behind, first = first, w
		w, whole.joiners = next, next
	}
	for w := first; w != nil; w = first {
		first, w.behind = w.behind, nil
		switch {
		case s.client.closing.Load():
			w.failLocked(ErrClosed)
		case !w.takeBackLocked():
			w.failLocked(ErrNotClaimed)
		case w.try:
			w.stage, w.lease = queued, nil
			if stop := s.shard.unwatchLocked(w); stop != nil {
				s.client.stops.Add(0, stop)
			}
			go s.client.enqueueNow(w, s.key) // does not wait; after the lease has ended
		default:
			w.stage, w.lease, w.since = queued, nil, watchdog.Now()
			s.waiters.push(w)
		}
	}
}

// takeBackLocked takes the waiter's result out of its channel. It reports whether it was still
// there. The channel may have results of other waiters too. It has room for all of them.
func (w *waiter) takeBackLocked() (found bool) {
	takingBack := &w.state.client.takingBack // two at a time would hold each other's results
	takingBack.Lock()
	defer takingBack.Unlock()
	for range len(w.result) { // all of them, so that their order stays
		select {
		case r := <-w.result:
			if r.waiter == w {
				found = true
				continue
			}
			w.result <- r
		default:
			return found
		}
	}
	return found
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
