// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Readers. A holding with the mode Shared is a tenure of readers. Its rules are numbered in
// docs/design.md, S1 to S7.

// admitRow serves the first waiters, if they are readers on equal terms. For others a stake contends: S5.
func (s *stake) admitRow(st *Step) {
	k := s.key
	for w := k.waiters.first; w != nil && *w.Terms == *s.terms && s.mayShare(w) && s.lastsLongEnough(st.Now); w = k.waiters.first {
		s.admit(k.waiters.pop(), s.holding.lease, st)
	}
	s.holding.together = false
	s.holding.way = WayLocal
	k.refuseAsked(st)
}

// admitReaders lets the first waiters join a tenure that is open to them. But whoever a stake contends for
// stays in the queue, because the store's answer is for the first. S3: a writer that is the first closes
// every tenure of this client. It reports whether anybody has joined.
func (k *Key) admitReaders(st *Step) (joined bool) {
	for w := k.waiters.first; w != nil; w = k.waiters.first {
		s := k.open(w, st.Now)
		if s == nil || k.contender() != nil {
			break
		}
		s.admit(k.waiters.pop(), s.holding.lease, st)
		joined = true
	}
	if w := k.waiters.first; w != nil && w.Terms.Mode == store.Exclusive {
		k.closeTenures()
	}
	return joined
}

// open returns the tenure that the waiter w, which is the first, may join without the store, or nil. S2:
// the terms are equal, enough trust is left, and the store has agreed to tell of waiters and knows of
// none.
func (k *Key) open(w *Waiter, now watchdog.Instant) *stake {
	if w.Terms.Mode != store.Shared {
		return nil
	}
	for s := &k.stakes; s != nil; s = s.next {
		h := s.holding
		if h != nil && h.lease != nil && *w.Terms == *s.terms && !h.closed && !h.long &&
			h.cohort.watching && s.lastsLongEnough(now) {
			return s
		}
	}
	return nil
}

// closeTenures lets no more readers join.
func (k *Key) closeTenures() {
	for s := &k.stakes; s != nil; s = s.next {
		if s.holding != nil && s.isShared() {
			s.holding.closed = true
		}
	}
}

// reopen makes a retained tenure one of its first waiter.
func (s *stake) reopen(st *Step) {
	s.setRoot(s.key.waiters.first.Caller.NewLease())
	s.holding.retained, s.holding.way = 0, WayRetained
	s.admit(s.key.waiters.pop(), s.holding.lease, st)
	s.holding.way = WayLocal
}
