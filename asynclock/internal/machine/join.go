// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Lasts reports whether the holding that l belongs or belonged to still lasts.
func (k *Key) Lasts(l *Lease, now watchdog.Instant, fx *Effects) bool {
	k.Check(l, 0, now, fx)
	return k.whole(l) != nil
}

// whole returns the lease that stands for the whole holding, or nil if the holding is over.
func (k *Key) whole(l *Lease) *Lease {
	if l.first != nil {
		l = l.first
	}
	if k.holding == nil || k.holding.lease != l {
		return nil // lost, or unlocked by all its holders
	}
	return l
}

// join makes a new lease for w that shares the holding of l. It reports false if the holding is over.
// The store does not know the new lease: the key is released when the last lease of the holding is
// unlocked, in any order.
func (k *Key) join(w *Waiter, l *Lease, fx *Effects) bool {
	whole := k.whole(l)
	if whole == nil {
		return false
	}
	j := k.host.NewLease(w)
	j.Token, j.Owner, j.Terms, j.uncertain = whole.Token, whole.Owner, whole.Terms, whole.uncertain
	j.first, j.claimed = whole, whole.claimed
	j.earlier, whole.joiner = whole.joiner, j
	w.Lease, w.Stage = j, Claimed
	k.schedule(fx) // it may not have been renewed any more; see isWanted
	return true
}

// claimJoined shares the holding of the lease that the waiter joins.
func (k *Key) claimJoined(w *Waiter, ended error, now watchdog.Instant, fx *Effects) {
	if h := k.holding; h != nil && now >= h.end() {
		if k.tick(now, fx); w.Stage != Joining {
			return // the lease to join has ended just now
		}
	}
	under := w.Lease
	k.stopJoining(w)
	switch {
	case ended != nil:
		w.Stage, w.Err, w.Lease = Ended, ended, nil
	case !k.join(w, under, fx):
		w.Stage, w.Err, w.Lease = Ended, ErrNotClaimed, nil // the holding has ended
	}
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
	w.behind, whole.joiners = whole.joiners, w
	return true
}

// stopJoining removes a future from those that may join its lease.
func (k *Key) stopJoining(w *Waiter) {
	whole := k.whole(w.Lease)
	if whole == nil || !w.Future {
		return
	}
	at := &whole.joiners
	for *at != w {
		at = &(*at).behind
	}
	*at, w.behind = w.behind, nil
}

// queueJoiners lets the unclaimed futures that would have joined the lease wait for the key instead,
// because the lease has ended. It fails those whose result the caller has received already.
func (k *Key) queueJoiners(now watchdog.Instant, fx *Effects) {
	whole := k.holding.lease
	var first *Waiter // the list has the last one first
	for w := whole.joiners; w != nil; {
		behind := w.behind
		w.behind, first = first, w
		w, whole.joiners = behind, behind
	}
	for w := first; w != nil; w = first {
		first, w.behind = w.behind, nil
		switch {
		case k.host.Closing():
			fx.fail(w, store.ErrClosed)
		case !k.host.TakeBack(w):
			fx.fail(w, ErrNotClaimed)
		case w.Try:
			w.Stage, w.Lease = Again, nil
			fx.decide(w)
		default:
			w.Stage, w.Lease, w.Since = Queued, nil, now
			k.waiters.push(w)
		}
	}
}
