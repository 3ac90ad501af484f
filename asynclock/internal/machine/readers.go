// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Readers. A holding with the mode Shared is a tenure of readers: one owner in the store, and any
// number of leases in this client. Its rules are numbered in docs/design.md, S1 to S7.
//
// The tenure is made of what re-entry is made of. It has a lease that no caller gets, the root. Each
// reader's lease joins the root, so the tenure ends with the last of them. A future that waits to be
// claimed is one that may join.

// beginTenure makes the holding a tenure with the root l. S4: it serves the first waiter and all readers
// on equal terms directly behind it.
func (s *stake) beginTenure(l *Lease, sent, now watchdog.Instant, fx *Effects) {
	h := s.holding
	h.closed = h.closed || h.cohort.waited || !s.isJoinable()
	h.renewAt = min(h.renewAt, watchfulSchedule(s.ttl(), s.key.host.Lane()).renewAt(sent)) // S6
	s.setRoot(l)
	s.admit(s.key.waiters.pop(), now, fx)
	s.admitRow(now, fx)
}

// admitRow serves the first waiters, if they are readers on equal terms. For others a stake contends: S5.
func (s *stake) admitRow(now watchdog.Instant, fx *Effects) {
	k := s.key
	for w := k.waiters.first; w != nil && *w.Terms == *s.terms && s.isJoinable() && s.lastsLongEnough(now); w = k.waiters.first {
		s.admit(k.waiters.pop(), now, fx)
	}
	if k.waiters.first != nil {
		k.serve(nil, now, fx)
	}
}

// isJoinable reports whether readers can share a tenure on these terms. S7: a lease with a maximum hold,
// or without renewal, has an end of its own.
func (s *stake) isJoinable() bool { return s.terms.Renew && s.terms.MaxHold == 0 }

// setRoot makes l the lease that stands for the tenure.
func (s *stake) setRoot(l *Lease) {
	h := s.holding
	l.Token, l.Owner, l.Terms, l.uncertain = h.grant.Fence, s.owner, s.terms, h.isUncertain()
	l.Err, l.unlocked = ErrUnlocked, true // nobody has it
	h.lease = l
}

// admit gives w a lease of the tenure. A future gets it with its claim.
func (s *stake) admit(w *Waiter, now watchdog.Instant, fx *Effects) {
	root := s.holding.lease
	if w.Future {
		w.Stage, w.Lease, w.admitted = Joining, root, true
		root.await(w)
		s.schedule(fx)
	} else {
		s.join(w, root, fx)
		s.countReader(w, root, now, fx)
	}
	fx.decide(w)
}

// countReader lets the maximum hold of a reader count from now. It has its tenure for itself.
func (s *stake) countReader(w *Waiter, root *Lease, now watchdog.Instant, fx *Effects) {
	if !s.isShared() {
		return
	}
	w.Lease.claimed = now
	if s.terms.MaxHold > 0 && root.bound == 0 {
		root.bound = now.Add(s.terms.MaxHold)
		s.schedule(fx)
	}
}

// admitReaders lets the first waiters join a tenure that is open to them. But whoever a stake contends for
// stays in the queue, because the store's answer is for the first. S3: a writer that is the first closes
// every tenure of this client.
func (k *Key) admitReaders(now watchdog.Instant, fx *Effects) {
	for w := k.waiters.first; w != nil; w = k.waiters.first {
		s := k.open(w, now)
		if s == nil || k.contender() != nil {
			break
		}
		s.admit(k.waiters.pop(), now, fx)
	}
	if w := k.waiters.first; w != nil && w.Terms.Mode == store.Exclusive {
		k.closeTenures()
	}
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
func (s *stake) reopen(now watchdog.Instant, fx *Effects) {
	s.setRoot(s.key.host.NewLease(s.key.waiters.first))
	s.holding.retained = 0
	s.admit(s.key.waiters.pop(), now, fx)
}

// leaveEmpty gives a tenure on if nobody has a lease of it or may still claim one.
func (k *Key) leaveEmpty(under *Lease, now watchdog.Instant, fx *Effects) {
	root := k.whole(under)
	if root == nil || !root.unlocked || root.joiner != nil || root.admitted > 0 {
		return
	}
	s := k.stakeOf(root.Owner)
	if !s.isShared() {
		return
	}
	if r := s.giveToNext(now, fx); r != nil {
		fx.releases.push(r)
	}
}

// revokeAdmitted fails the futures that have not claimed their lease of the tenure.
func (s *stake) revokeAdmitted(reason error, now watchdog.Instant, fx *Effects) {
	root := s.holding.lease
	for w := root.joiners; w != nil; {
		behind := w.behind
		if w.admitted {
			root.unawait(w)
			fx.fail(w, reason)
		}
		w = behind
	}
	s.key.leaveEmpty(root, now, fx)
}
