// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// There are three kinds of holdings: an exclusive lease, a tenure of readers, and a block of permits. These functions do
// for each what it does in its own way.
//
// An interface with three implementations would say the same. But a Step that is handed to an interface is no longer
// on the stack. That costs an allocation for each step.

// handOut gives what was granted to the first waiter, and to those behind it that it is for. L is memory for the lease
// of the first.
func (s *stake) handOut(l *Lease, g grant, st *Step) {
	switch s.terms.Mode {
	case store.Shared:
		s.beginTenure(l, g.sent, st)
		s.admitRow(st)
	case store.Permits:
		s.beginTenure(l, g.sent, st)
		s.admitBlock(st)
	default:
		s.handToOne(l, st)
	}
}

// isLoose reports whether nobody has the holding any more, or a part of it, and it is not retained.
func (s *stake) isLoose(now watchdog.Instant) bool {
	h := s.holding
	switch {
	case h == nil || h.downgrade != nil:
		return false
	case h.lease == nil:
		return h.retained == 0
	case s.isBlock():
		return s.spare(now) > 0
	default: // nobody has the root of a tenure
		return h.lease.unlocked && h.lease.joiner == nil
	}
}

// passOn gives what nobody has to waiters of this client, retains it, or gives it back to the store.
func (s *stake) passOn(st *Step) {
	isUnlocked := s == st.unlocks // when the holding has ended, the stake may be used for another
	var r *Release
	switch s.terms.Mode {
	case store.Shared:
		r = s.retainOrGiveBack(st)
	case store.Permits:
		r = s.passPermits(st)
	default:
		r = s.passToOne(st)
	}
	switch {
	case r == nil:
	case isUnlocked && st.release == nil:
		st.release = r
	default:
		st.releases.push(r)
	}
}

// excludes reports whether w, the first waiter, can't have the key beside what lies.
func (s *stake) excludes(w *Waiter) bool {
	switch s.terms.Mode {
	case store.Shared:
		return w.Terms.Mode != store.Shared
	case store.Permits:
		return true
	default:
		return *w.Terms != *s.terms
	}
}
