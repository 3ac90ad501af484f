// SPDX-License-Identifier: Apache-2.0

package machine

import "github.com/asynclock/asynclock-go/watchdog"

// reconcile ends each step. An input only changes the state. Here is decided, from the state alone, what follows for
// those who wait and for the key. To reconcile once more at the same time changes nothing.
func (k *Key) reconcile(st *Step) {
	k.follow(st)
	if k.used && k.IsUnused() {
		k.used, st.Dropped = false, true
	}
}

// follow passes on what nobody has, and serves the waiters.
func (k *Key) follow(st *Step) {
	k.adapt(st)
	k.passLoose(st)
	for k.waiters.first != nil && (k.serveTry(st) || k.admitReaders(st)) {
		k.passLoose(st) // what a try has left of what it took up
	}
	if k.waiters.first != nil {
		k.serve(st)
	}
	st.given, st.trouble = nil, nil
	k.leaveAll(st)
}

// serve lets a stake contend for the first waiter, if none does and one may.
func (k *Key) serve(st *Step) {
	if k.contender() != nil {
		return
	}
	if !k.rides() {
		k.leaves(st.given)
		st.given = nil
	}
	k.refuseLate(st)
	if k.mayContend(k.waiters.first) {
		k.contend(st)
	} else {
		k.refuseIdle(st)
	}
}

// adapt lets the attempt go on for the first waiter, which may be another than before. It ends the attempt if it can't.
func (k *Key) adapt(st *Step) {
	s, first := k.contender(), k.waiters.first
	if s == nil {
		return
	}
	a := s.attempt
	switch {
	case !s.serves(first):
		s.abandon(a.trouble, st)
	case a.unasked != nil && a.unasked != first, a.trouble == nil && a.weight != first.Weight:
		// P8: the place in the queue stays, for a request with another weight. In trouble, the next request has its time.
		s.requestAgain(st)
	}
}

// rides reports whether the request of the first waiter is to come with the withdrawal of the attempt before: T4.
func (k *Key) rides() bool {
	first := k.waiters.first
	return first.Try && k.TriesRequeue && k.mayContend(first)
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

// passLoose decides what happens to what nobody has.
func (k *Key) passLoose(st *Step) {
	for s := &k.stakes; s != nil; {
		next := s.next
		if s.isLoose(st.Now) {
			s.passOn(st)
		}
		s = next
	}
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

// retake gives what nobody has to the first waiter, which has just come. It does so at once if it is allowed to, and
// otherwise through the store.
func (s *stake) retake(st *Step) {
	h, first := s.holding, s.key.waiters.first
	usable := (h.retained == 0 || st.Now < h.retained) && s.isUsable(first, st.Now)
	switch {
	case h.lease != nil: // permits, which are passed on anyway
	case usable && s.isShared():
		s.reopen(st)
	case usable && h.hasToken(st.Now) && s.deliverTo(first, st):
	default:
		s.key.releaseRetained(st)
	}
}

// isUsable reports whether w could have the holding if nobody had it.
func (s *stake) isUsable(w *Waiter, now watchdog.Instant) bool {
	return s.holding.failed == nil && *w.Terms == *s.terms && s.lastsLongEnough(now)
}

// deliverTo gives an exclusive key to the first waiter, which has just come, or to one before it that receives: F1.
func (s *stake) deliverTo(first *Waiter, st *Step) bool {
	if first.Try {
		return s.deliverNext(0, st)
	}
	if w := s.key.receiver(first, st); w != nil {
		s.deliver(w, false, st)
		return true
	}
	return s.deliverNext(fewTries, st)
}

// takeUp returns what is free for w, the first waiter, or nil. It takes back what lies. A reader joins a tenure that is
// open instead.
func (k *Key) takeUp(w *Waiter, st *Step) *stake {
	if k.open(w, st.Now) != nil {
		return nil
	}
	k.recallFor(w, st)
	return k.free(w, st.Now)
}

// free returns the stake that nobody has, and that w is to get, or that stands in its way, or nil.
func (k *Key) free(w *Waiter, now watchdog.Instant) (found *stake) {
	for s := &k.stakes; s != nil; s = s.next {
		free := s.isRetained() || s.holding != nil && s.isBlock() && s.spare(now) > 0
		if free && (found == nil || *s.terms == *w.Terms) {
			found = s
		}
	}
	return found
}
