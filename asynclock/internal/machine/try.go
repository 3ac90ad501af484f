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

// refuseTries fails those in the queue that never wait, each with its own error. Why returns it, or nil for who stays.
func (k *Key) refuseTries(why func(w *Waiter) error, st *Step) {
	if k.waiters.tries == 0 {
		return
	}
	for w := k.waiters.first; w != nil; {
		behind := w.behind
		if w.Try {
			if err := why(w); err != nil {
				k.waiters.remove(w)
				st.fail(w, err)
			}
		}
		w = behind
	}
}

// refuseAsked fails those that never wait and came before the store's last request was made. A grant has answered it,
// and served others: T3.
func (k *Key) refuseAsked(st *Step) {
	k.refuseTries(func(w *Waiter) error {
		if w.since == k.requests {
			return nil
		}
		return k.ourHolding(w, st.Now)
	}, st)
}

// refuseLate fails those that never wait and are behind others still, after two requests. Those ahead of them have
// given up, so nobody has told them anything: T3.
func (k *Key) refuseLate(st *Step) {
	k.refuseTries(func(w *Waiter) error {
		if w == k.waiters.first || k.requests-w.since < 2 {
			return nil
		}
		return &HeldError{Remaining: -1}
	}, st)
}

// refuseIdle is refuseAll if no answer is to come.
func (k *Key) refuseIdle(st *Step) {
	if k.contender() == nil && !k.isHeldUp() {
		k.refuseAll(st)
	}
}

// refuseAll fails all that never wait.
func (k *Key) refuseAll(st *Step) {
	k.refuseTries(func(w *Waiter) error { return k.ourHolding(w, st.Now) }, st)
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

// serveTry looks at the first waiters that never wait as if they had just come. It reports whether one of them gets
// what nobody has.
func (k *Key) serveTry(st *Step) (served bool) {
	for w := k.waiters.first; w != nil && w.Try && k.contender() == nil; w = k.waiters.first {
		if free := k.takeUp(w, st); free != nil {
			free.retake(st)
			return true
		}
		var err error
		if k.open(w, st.Now) == nil {
			err = k.keepsOut(w, st.Now)
		}
		if err == nil {
			break
		}
		k.waiters.pop()
		st.fail(w, err)
	}
	return false
}

// isHeldUp reports whether the first waiter never waits, and does not ask before the store has answered a withdrawal: T4.
func (k *Key) isHeldUp() bool {
	first := k.waiters.first
	return first != nil && first.Try && k.leaving > 0
}

// leaves holds up who never waits until the first answer to r, which may be nil: T4.
func (k *Key) leaves(r *Release) {
	if r == nil {
		return
	}
	r.Leaves = true
	k.host.Leaves()
	if !k.isHeldUp() { // a try does not wait for those that come after it
		k.leaving++
	}
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
