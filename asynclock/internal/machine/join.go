// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/store"
)

// Lasts reports whether the holding that l belongs or belonged to still lasts.
func (k *Key) Lasts(l *Lease, st *Step) bool {
	defer k.reconcile(st)
	k.check(l, 0, st)
	root := k.root(l)
	// A tenure goes on without this lease, and is no concern of its context.
	return root != nil && (l.Err == nil || root.Terms.Mode == store.Exclusive)
}

// root returns the lease that stands for the holding, or nil if the holding is over.
func (k *Key) root(l *Lease) *Lease {
	l = l.Root()
	s := k.stakeOf(l.Owner)
	if s == nil || s.holding == nil || s.holding.lease != l || s.holding.downgrade != nil {
		return nil // lost, or unlocked by all its holders
	}
	return l
}

// join makes a new lease for w that shares the holding of the root. The store does not know the
// new lease: the key is released when the last lease of the holding is unlocked, in any order.
func (s *stake) join(w *Waiter, root *Lease) {
	j := w.Caller.NewLease()
	j.begin(root.Token, root.Owner, root.Terms, root.uncertain)
	j.tie()
	root.tie()
	j.root, j.claimed = root, root.claimed
	j.Weight = w.Weight
	root.Weight += w.Weight
	root.joined++
	j.earlier, root.joiner = root.joiner, j
	if j.earlier != nil {
		j.earlier.later = j
	}
	w.Lease, w.Way = j, s.holding.way
}

// admit lets w share the holding of the root. The lease of a future lies in its channel, until somebody
// has received it.
func (s *stake) admit(w *Waiter, root *Lease, st *Step) {
	s.join(w, root)
	if !w.Future || s.key.send(w, st) {
		s.claim(w, st)
		return
	}
	w.Stage, w.Lease.lying = Lying, w
	s.holding.unseen = false
	root.lies++
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
	root := k.root(w.Lease)
	if root == nil {
		w.Stage, w.Lease = Queued, nil
		return false
	}
	s.admit(w, root, st)
	w.Way = WayJoined
	return true
}
