// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A tenure is a holding that several leases of this client share, each by itself: a tenure of readers, or
// a block of permits. In the store it is one owner.
//
// The tenure is made of what re-entry is made of. It has a lease that no caller gets, the root. Each
// caller's lease joins the root, so the tenure ends with the last of them.

// beginTenure makes the holding a tenure with the root l. It serves the first waiter, and those directly
// behind it that may share the tenure: S4, P2.
func (s *stake) beginTenure(l *Lease, sent watchdog.Instant, st *Step) {
	h := s.holding
	h.closed = h.closed || h.cohort.waited || !s.isJoinable()
	h.renewAt = min(h.renewAt, watchfulSchedule(s.ttl(), s.key.host.Lane()).renewAt(sent)) // S6
	s.setRoot(l)
	h.together = s.endTogether() && !s.key.waiters.first.Future
	s.admit(s.key.waiters.pop(), l, st)
	if s.isShared() {
		s.admitRow(st)
	} else {
		s.admitBlock(st)
	}
}

// isJoinable reports whether leases can join a tenure on these terms. S7, P10: a lease with a maximum or
// minimum hold, or without renewal, has an end of its own.
func (s *stake) isJoinable() bool {
	return s.terms.Renew && s.terms.MaxHold == 0 && s.terms.MinHold == 0 || s.holding != nil && s.holding.unseen
}

// endTogether reports whether leases on these terms end together if they begin together: their holds have one bound.
// So a grant can serve several of them: S7, P10. Until all have ended, the client keeps back what a minimum hold keeps.
// That is short enough for the store to keep it if the client dies: see trust in a grant by message.
func (s *stake) endTogether() bool {
	t := s.terms
	return t.Renew && (t.MaxHold > 0 || t.MinHold > 0) && t.MinHold <= heartbeat(t.TTL)
}

// mayShare reports whether the lease of w can share the tenure.
func (s *stake) mayShare(w *Waiter) bool { return s.isJoinable() || s.holding.together && !w.Future }

// setRoot makes l the lease that stands for the tenure.
func (s *stake) setRoot(l *Lease) {
	h := s.holding
	l.Token, l.Owner, l.Terms, l.uncertain = h.token(), s.owner, s.terms, h.isUncertain()
	l.Err, l.unlocked = ErrUnlocked, true // nobody has it
	h.lease = l
	s.key.host.IsRoot(l)
}

// countBounds lets the bounds of a lease's hold count from now. A lease that has such has its tenure for
// itself.
func (s *stake) countBounds(w *Waiter, root *Lease, now watchdog.Instant) {
	if !s.isTenure() {
		return
	}
	w.Lease.claimed = now
	if root.claimed == 0 {
		root.claimed = now
	}
	if s.terms.MaxHold > 0 && root.bound == 0 {
		root.bound = now.Add(s.terms.MaxHold)
	}
}

// loseForgotten ends the tenures of this client that can't be beside what the store has granted it now. So the store has
// forgotten them, or they have ended, and nobody has told of that yet.
func (s *stake) loseForgotten(st *Step) {
	for t := &s.key.stakes; t != nil; {
		next := t.next
		if t.holding != nil && t.isTenure() && t.terms.Mode != s.terms.Mode {
			cause := t.lapse(st.Now)
			if cause == nil {
				cause = t.holding.whyLost(store.ErrExpired)
			}
			t.lose(cause, st)
		}
		t = next
	}
}
