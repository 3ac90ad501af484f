// SPDX-License-Identifier: Apache-2.0

package machine

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
