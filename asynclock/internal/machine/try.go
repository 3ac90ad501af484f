// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Those who never wait. A try joins the queue of its client as long as an answer of the store is to come, and never
// longer. Its rules are numbered in docs/design.md, T1 to T4.

// keepsOut returns what keeps out w, which never waits, or nil if an answer of the store will tell: T1.
func (k *Key) keepsOut(w *Waiter, now watchdog.Instant) error {
	for s := &k.stakes; s != nil; s = s.next {
		if s.holding != nil && (!s.isTenure() || w.Terms.Mode != s.terms.Mode) {
			k.wantParts()
			return k.ourHolding(w, now)
		}
	}
	if k.contender() != nil {
		return k.Obstacle(w, now)
	}
	if k.hasAll(w) {
		return k.ourHolding(w, now)
	}
	return nil
}

// wantParts notes that somebody wants the key, for a part of a Whole that lies.
func (k *Key) wantParts() {
	for s := &k.stakes; s != nil; s = s.next {
		if s.holding != nil && s.holding.lease.isGathered() {
			s.holding.requested = true
		}
	}
}

// wantsNoLess reports whether whoever refuses this share refuses w, too.
func (w *Waiter) wantsNoLess(share store.Share) bool {
	switch {
	case w.Terms.Mode == store.Exclusive:
		return true
	case w.Terms.Mode != share.Mode:
		return false
	}
	return w.Weight >= share.Weight && w.Terms.Limit <= share.Limit
}

// Left handles the first answer to a release that [Release.Leaves] has marked. If the store could not be asked, err says
// why, and a try that it holds up fails: it has waited for long.
func (k *Key) Left(err error, st *Step) {
	defer k.reconcile(st)
	if failure.Transient(err) && k.isHeldUp() && k.contender() == nil {
		k.refuseTries(func(*Waiter) error { return failure.Unreachable(err) }, st)
	}
	k.leaving = max(k.leaving-1, 0)
}
