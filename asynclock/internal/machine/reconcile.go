// SPDX-License-Identifier: Apache-2.0

package machine

import "github.com/asynclock/asynclock-go/watchdog"

// reconcile ends each step. An input changes the state. What follows for those who wait and for the key is decided here,
// from the state alone.
func (k *Key) reconcile(st *Step) {
	k.follow(st)
	k.leaves(st.given)
	st.given = nil
	if k.used && k.Idle() {
		k.used, st.Dropped = false, true
	}
}

// follow decides what follows for the waiters. A stake that contends goes on for the first of them, if it may.
// Otherwise readers join a tenure that is open, and a stake contends for others, if one may.
func (k *Key) follow(st *Step) {
	for again := true; again; again = k.serveTry(st) {
		k.settle(st)
		if s := k.contender(); s != nil {
			s.goOnFor(k.waiters.first, st)
		}
	}
	k.admitReaders(st)
	if k.contender() != nil {
		return
	}
	if !k.rides() {
		k.leaves(st.given)
		st.given = nil
	}
	k.refuseLate(st)
	switch first := k.waiters.first; {
	case first == nil:
	case k.mayContend(first):
		k.contend(st)
	default:
		k.refuseIdle(st)
	}
}

// goOnFor adapts the attempt to the first waiter, or nil. It ends the attempt if nobody waits, or if it can't go on for that one.
func (s *stake) goOnFor(first *Waiter, st *Step) {
	a := s.attempt
	switch {
	case !s.serves(first):
		s.abandon(a.trouble, st)
	case a.unasked && !first.quits, a.trouble == nil && first.Weight != a.weight:
		// P8: the place in the queue stays, for a request with another weight. In trouble, the next request has its time.
		s.requestAgain(st)
	}
}

// rides reports whether the request of the first waiter is to come with the withdrawal of the attempt before: T4.
func (k *Key) rides() bool {
	first := k.waiters.first
	return first != nil && first.Try && k.host.TriesRequeue() && k.mayContend(first)
}

// contend lets a stake contend for the first waiter.
func (k *Key) contend(st *Step) {
	s := k.unused()
	call := s.contend(st.trouble, st.Now)
	if r := st.given; r != nil {
		st.given, r.Requeue, r.Batch[0].Requeue = nil, call, call.Request()
	} else {
		st.acquires.push(call)
	}
	s.watchTrouble(st.Now)
}

// settle decides what happens to what nobody has.
func (k *Key) settle(st *Step) {
	for s := &k.stakes; s != nil; {
		next := s.next
		if s.isLoose(st.Now) {
			s.passOn(st)
		}
		s = next
	}
}

// isLoose reports whether the holding has something that nobody has, and that is not retained.
func (s *stake) isLoose(now watchdog.Instant) bool {
	switch h := s.holding; {
	case h == nil || h.downgrade != nil:
		return false
	case h.lease == nil:
		return h.retained == 0
	case s.isBlock():
		return s.spare(now) > 0
	default:
		return h.lease.unlocked && h.lease.joiner == nil
	}
}

// passOn gives what nobody has to waiters of this client, retains it, or gives it back to the store.
func (s *stake) passOn(st *Step) {
	isUnlocked := s == st.unlocks
	var r *Release
	if s.isBlock() {
		r = s.passPermits(st)
	} else {
		r = s.giveToNext(st)
	}
	switch {
	case r == nil:
	case isUnlocked && st.release == nil:
		st.release = r
	default:
		st.releases.push(r)
	}
}
