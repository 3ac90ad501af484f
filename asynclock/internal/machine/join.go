// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Lasts reports whether the holding that l belongs or belonged to still lasts.
func (k *Key) Lasts(l *Lease, now watchdog.Instant, fx *Effects) bool {
	k.Check(l, 0, now, fx)
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
func (s *stake) join(w *Waiter, whole *Lease, fx *Effects) {
	j := s.key.host.NewLease(w)
	j.Token, j.Owner, j.Terms, j.uncertain = whole.Token, whole.Owner, whole.Terms, whole.uncertain
	j.first, j.claimed = whole, whole.claimed
	j.Weight = w.Weight
	whole.Weight += w.Weight
	j.earlier, whole.joiner = whole.joiner, j
	if j.earlier != nil {
		j.earlier.later = j
	}
	w.Lease, w.Stage = j, Claimed
	s.schedule(fx) // it may not have been renewed any more; see isWanted
}

// claimJoined shares the holding of the lease that the waiter joins.
func (k *Key) claimJoined(w *Waiter, ended error, now watchdog.Instant, fx *Effects) {
	if s := k.stakeOf(w.Lease.Owner); s != nil && s.holding != nil && now >= s.holding.end() {
		if s.tick(now, fx); w.Stage != Joining {
			return // the lease to join has ended just now
		}
	}
	under := w.Lease
	k.stopJoining(w)
	whole := k.whole(under)
	var refused error
	switch {
	case ended != nil:
		refused = ended
	case whole == nil:
		refused = ErrNotClaimed // the holding has ended
	case w.admitted && k.host.Closing():
		refused = store.ErrClosed
	default:
		s := k.stakeOf(whole.Owner)
		s.join(w, whole, fx)
		s.countBounds(w, whole, now, fx)
		return
	}
	w.Stage, w.Err, w.Lease = Ended, refused, nil
	k.leaveEmpty(under, now, fx)
}

// JoinLater lets a future join the lease that it is under. The join counts only from the claim, so
// that an unclaimed future keeps nothing. JoinLater reports false if the lease has ended by now; then
// the future is to arrive like any other.
func (k *Key) JoinLater(w *Waiter) bool {
	whole := k.whole(w.Lease)
	if whole == nil {
		w.Stage, w.Lease = Queued, nil
		return false
	}
	whole.await(w)
	return true
}

// stopJoining removes a future from those that may join its lease.
func (k *Key) stopJoining(w *Waiter) {
	whole := k.whole(w.Lease)
	if whole == nil || !w.Future {
		return
	}
	whole.unawait(w)
}

// await adds a future to those that may join the lease.
func (l *Lease) await(w *Waiter) {
	w.behind, l.joiners = l.joiners, w
	if w.behind != nil {
		w.behind.ahead = w
	}
	if w.admitted {
		l.admitted++
		l.Weight += w.Weight
	}
}

// unawait removes a future from those that may join the lease.
func (l *Lease) unawait(w *Waiter) {
	if w.ahead == nil {
		l.joiners = w.behind
	} else {
		w.ahead.behind = w.behind
	}
	if w.behind != nil {
		w.behind.ahead = w.ahead
	}
	w.ahead, w.behind = nil, nil
	if w.admitted {
		l.admitted--
		l.Weight -= w.Weight
	}
}

// queueJoiners lets the unclaimed futures that would have joined the lease wait for the key instead,
// because the lease has ended. It fails those whose result the caller has received already.
func (s *stake) queueJoiners(now watchdog.Instant, fx *Effects) {
	whole := s.holding.lease
	last := whole.joiners // the list has the last one first
	for last != nil && last.behind != nil {
		last = last.behind
	}
	for w := last; w != nil; w = last {
		last = w.ahead
		whole.unawait(w)
		switch {
		case s.key.host.Closing():
			fx.fail(w, store.ErrClosed)
		case !s.key.host.TakeBack(w):
			fx.fail(w, ErrNotClaimed)
		case w.Try:
			w.Stage, w.Lease = Again, nil
			fx.decide(w)
		default:
			w.Stage, w.Lease, w.Since, w.admitted = Queued, nil, now, false
			s.key.waiters.push(w)
		}
	}
}
