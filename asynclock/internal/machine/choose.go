// SPDX-License-Identifier: Apache-2.0

package machine

// hasTaker reports whether somebody may take what is on these terms.
func (k *Key) hasTaker(terms *Terms) bool {
	return k.futures.idle.n > 0 || k.waiters.first != nil && *k.waiters.first.Terms == *terms
}

// send puts w's result into its channel. Leases that have ended are told of before. Otherwise the receiver
// might be at work while the context of the holder before it still lasts.
func (k *Key) send(w *Waiter, st *Step) bool {
	for l := st.NextEnded(); l != nil; l = st.NextEnded() {
		k.host.TellEnded(l)
	}
	return w.Caller.Send()
}

// choose takes the next owner of an exclusive key from its queue: F1. That is the first who takes the key.
// A future does so if somebody receives from its channel, or if it has come just now. If it has not been received,
// lies is true: the result of the waiter is in its channel. It returns nil if nobody is there, or nothing may lie.
// Tries is how many idle futures are tried.
func (s *stake) choose(tries int32, st *Step) (w *Waiter, lies bool) {
	k := s.key
	for n := min(k.futures.idle.n, tries); n > 0; n-- {
		w := k.futures.idle.pop()
		if *w.Terms == *s.terms && (k.send(w, st) || !w.Caller.TakeBack()) {
			return w, false
		}
		k.futures.idle.push(w)
	}
	for n := mostTries; ; n-- {
		w := k.waiters.first
		if w == nil || *w.Terms != *s.terms {
			return s.chooseIdle(st)
		}
		k.waiters.pop()
		if !w.Future || k.send(w, st) {
			return w, false
		}
		k.futures.beginPatience(st.Now)
		if (w.Try || w.isNew(st.Now) || n == 0 || k.waiters.first == nil || *k.waiters.first.Terms != *s.terms) && s.mayLie(st.Now) && !w.Caller.IsGone() {
			return w, true
		}
		if !w.Caller.TakeBack() {
			return w, false
		}
		k.setAside(w, st)
	}
}

// receiver takes a future out of the queue that first, which has just come, has overtaken, if somebody receives from it.
// A few are tried, each time others.
func (k *Key) receiver(first *Waiter, st *Step) *Waiter {
	if k.futures == &noFutures {
		return nil
	}
	for range min(k.waiters.n, fewTries) {
		if w := k.waiters.look(); w != first && w.Future && *w.Terms == *first.Terms && (k.send(w, st) || !w.Caller.TakeBack()) {
			k.waiters.remove(w)
			return w
		}
	}
	return nil
}

// chooseIdle lets the key lie with an idle future.
func (s *stake) chooseIdle(st *Step) (w *Waiter, lies bool) {
	k := s.key
	for n := min(k.futures.idle.n, fewTries); n > 0 && s.mayLie(st.Now) && k.waiters.tries == 0; n-- {
		switch w := k.futures.idle.pop(); {
		case w.Caller.IsGone():
			st.fail(w, ErrGone)
		case *w.Terms == *s.terms:
			return w, !k.send(w, st)
		default:
			k.futures.idle.push(w)
		}
	}
	return nil, false
}
