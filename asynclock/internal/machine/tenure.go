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

// beginTenure makes the holding a tenure with the root l, and serves the first waiter: S4, P2.
func (s *stake) beginTenure(l *Lease, sent watchdog.Instant, st *Step) {
	h := s.holding
	h.closed = h.closed || h.cohort.waited || !s.isJoinable()
	h.renewAt = min(h.renewAt, watchfulSchedule(s.ttl(), int(s.key.Lane)).renewAt(sent)) // S6
	s.setRoot(l)
	h.together = s.endTogether() && !s.key.waiters.first.Future
	s.admit(s.key.waiters.pop(), l, st)
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
