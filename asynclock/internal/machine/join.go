// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/store"
)

// Lasts reports whether the holding that l belongs or belonged to still lasts.
func (k *Key) Lasts(l *Lease, st *Step) bool {
	defer k.reconcile(st)
	k.check(l, 0, st)
	whole := k.whole(l)
	// A tenure goes on without this lease, and is no concern of its context.
	return whole != nil && (l.Err == nil || whole.Terms.Mode == store.Exclusive)
}

// whole returns the lease that stands for the whole holding, or nil if the holding is over.
func (k *Key) whole(l *Lease) *Lease {
	l = l.First()
	s := k.stakeOf(l.Owner)
	if s == nil || s.holding == nil || s.holding.lease != l || s.holding.downgrade != nil {
		return nil // lost, or unlocked by all its holders
	}
	return l
}

// join makes a new lease for w that shares the holding of the lease whole. The store does not know the
// new lease: the key is released when the last lease of the holding is unlocked, in any order.
func (s *stake) join(w *Waiter, whole *Lease) {
	j := w.Caller.NewLease()
	j.Token, j.Owner, j.Terms, j.uncertain = whole.Token, whole.Owner, whole.Terms, whole.uncertain
	j.first, j.claimed = whole, whole.claimed
	j.Weight = w.Weight
	whole.Weight += w.Weight
	whole.joined++
	j.earlier, whole.joiner = whole.joiner, j
	if j.earlier != nil {
		j.earlier.later = j
	}
	w.Lease = j
}

// admit lets w share the holding of the lease whole. The lease of a future lies in its channel, until somebody
// has received it.
func (s *stake) admit(w *Waiter, whole *Lease, st *Step) {
	s.join(w, whole)
	if !w.Future || s.key.send(w, st) {
		s.claim(w, st)
		return
	}
	w.Stage, w.Lease.lying = Lying, w
	s.holding.unseen = false
	whole.lies++
	if f := s.key.futures; s.isTenure() {
		f.beginPatience(st.Now)
		f.lookAt = st.Now.Add(firstLook)
		s.holding.renewAt = min(s.holding.renewAt, s.watchAt(st.Now))
	}
}

// Join shares the holding of the lease that w is under. It reports false if that has ended by now; then w is
// to arrive like any other.
func (k *Key) Join(w *Waiter, st *Step) bool {
	defer k.reconcile(st)
	k.needsFutures(w)
	s := k.stakeOf(w.Lease.Owner)
	if s != nil && s.holding != nil && st.Now >= s.holding.end() {
		s.tick(st)
	}
	whole := k.whole(w.Lease)
	if whole == nil {
		w.Stage, w.Lease = Queued, nil
		return false
	}
	s.admit(w, whole, st)
	return true
}
