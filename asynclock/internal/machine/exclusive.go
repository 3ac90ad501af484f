// SPDX-License-Identifier: Apache-2.0

package machine

// Exclusive leases. A holding has one at a time, except for re-entry.

// handToOne gives a key that was granted to one waiter, whose lease may be l.
func (s *stake) handToOne(l *Lease, st *Step) {
	first, tries := s.key.waiters.first, fewTries
	if first.Try {
		tries = 0 // its caller does not wait for another's unlock
	}
	w, lies := s.choose(tries, st)
	if w == nil { // nobody can receive any more
		st.releases.push(s.giveBack(0, st))
		return
	}
	if w != first {
		l = w.Caller.NewLease()
	}
	s.give(l, w, lies, st)
}

// passToOne gives a key whose lease has ended to a waiter of this client, if that is allowed. Otherwise it retains the
// key, or returns the release to send.
func (s *stake) passToOne(st *Step) *Release {
	if s.holding.lease.holdBack(st.Now) == 0 && s.key.hasTaker(s.terms) && s.mayPassLocally(st.Now) && s.passLocally(st) {
		return nil
	}
	return s.retainOrGiveBack(st)
}
