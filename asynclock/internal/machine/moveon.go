// SPDX-License-Identifier: Apache-2.0

package machine

// tickLying does the work that is due while something lies.
func (s *stake) tickLying(st *Step) {
	s.notice(st)
	switch {
	case !s.isLying():
		s.tick(st)
	case !s.mayLie(st.Now):
		s.moveOn(st)
	case st.Now >= s.key.futures.lookAt && !s.isShared() && s.key.hasTaker(s.terms):
		s.look(st)
	default:
		s.renewIfDue(st)
	}
}

// notice makes what was received its receivers', although they have not looked at it yet.
func (s *stake) notice(st *Step) {
	root := s.holding.lease
	if root.lying != nil && !root.lying.Caller.Lies() {
		s.claim(root.lying, st)
	}
	for j := root.joiner; j != nil && root.lies > 0; j = j.earlier {
		if j.lying != nil && !j.lying.Caller.Lies() {
			s.claim(j.lying, st)
		}
	}
}

// look gives what lies to somebody else who receives, or lets it lie with the next one: F2.
func (s *stake) look(st *Step) {
	f := s.key.futures
	lain, pause := f.lain, nextLook
	switch age := st.Now.Sub(lain); {
	case age >= 100*patience:
		pause = lastLook
	case age >= patience:
		pause = laterLook
	}
	switch all := s.recall(st); {
	case s.isBlock():
		s.passOn(st)
	case !all: // it was received
	case !s.lastsLongEnough(st.Now) || !s.deliverNext(mostTries, st):
		st.releases.push(s.giveBack(0, st))
	}
	if s.isLying() {
		f.lain, f.lookAt = lain, st.Now.Add(pause)
	}
}

// yield gives back what nobody has, because others want the key. It reports whether it did.
func (s *stake) yield(st *Step) bool {
	switch {
	case s.isRetained():
		s.releaseRetained(st)
		return true
	case !s.isLying():
	case !s.mayLie(st.Now):
		s.moveOn(st)
		return true
	default:
		s.holding.renewAt = min(s.holding.renewAt, s.watchAt(st.Now))
	}
	return false
}

// moveOn takes back what lies, for others who want the key. The futures queue again after a pause: F5.
func (s *stake) moveOn(st *Step) {
	k, pause := s.key, unaskedPause
	known, inVain := s.isContested(), s.key.futures.lieUntil > s.key.futures.lain
	if s.recall(st) {
		if known && inVain {
			k.futures.vain = min(k.futures.vain+1, 8)
		}
		k.futures.vain = max(k.futures.vain, 1)
		if known {
			pause = k.pause()
		}
		k.reviveIn(pause, st.Now)
	}
	s.lessOne(st)
}

// lessOne adapts what lies to a holding with one lease less. If only futures are left that joined a lease by re-entry,
// they wait for the key instead.
func (s *stake) lessOne(st *Step) {
	root := s.holding.lease
	if root != nil && root.unlocked && !s.isTenure() && root.joined == root.lies {
		s.recall(st)
	}
	if !s.isLoose(st.Now) && s.isLying() && !s.isBlock() {
		s.yield(st)
	}
}
