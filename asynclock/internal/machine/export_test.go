// SPDX-License-Identifier: Apache-2.0

package machine

import "github.com/asynclock/asynclock-go/watchdog"

// Reconcile is what each input ends with.
func (k *Key) Reconcile(st *Step) { k.reconcile(st) }

// NoTiesChanged reports whether somebody has written ties that belong to no lease.
func NoTiesChanged() bool { return noTies != Ties{} }

// Misled reports whether k has an attempt that is not for its first waiter.
func (k *Key) Misled() bool {
	s := k.contender()
	return s != nil && !s.serves(k.waiters.first)
}

// Both reports whether a stake of k has an attempt and a holding. It may have one of them.
func (k *Key) Both() bool {
	for s := &k.stakes; s != nil; s = s.next {
		if s.attempt != nil && s.holding != nil {
			return true
		}
	}
	return false
}

// Queued returns how many waiters k has in its queue.
func (k *Key) Queued() int { return int(k.waiters.n) }

// Answering reports whether k waits for an answer of the store, or is about to ask again.
func (k *Key) Answering() bool {
	s := k.contender()
	return s != nil && (s.attempt.inFlight > 0 || s.attempt.due != never && s.attempt.blocker == nil)
}

// Unwatched says what of k would be forgotten: it is not looked at when it is due. Empty: nothing.
func (k *Key) Unwatched() string {
	due := k.Due()
	if due == 0 {
		due = never
	}
	if k.futures.idle.n > 0 && (due > k.futures.revival || k.futures.revival == 0) {
		return "idle futures"
	}
	for s := &k.stakes; s != nil; s = s.next {
		switch h, a := s.holding, s.attempt; {
		case h != nil && due > max(h.end(), 1):
			return "the end of a holding"
		case h != nil && s.renewable() && due > h.renewAt:
			return "a renewal"
		case a != nil && a.inFlight == 0 && (a.due == never || due > a.due):
			return "an attempt"
		}
	}
	if k.waiters.first != nil && due == never && k.contender() == nil && !k.isHeldUp() {
		return "waiters"
	}
	return ""
}

// HeldUp reports whether who never waits is the first, and nothing was requested.
func (k *Key) HeldUp() bool { return k.hasNothing() && k.waiters.first != nil && k.waiters.first.Try }

// Miscounts reports whether other callers wait than those that count against the limit of the queue.
func (k *Key) Miscounts() bool {
	var calls int32
	bounds := make(map[<-chan struct{}]bool)
	for _, q := range [...]*queue{&k.waiters, &k.futures.idle} {
		for w := q.first; w != nil; w = w.behind {
			switch {
			case w.Try:
			case w.Future:
				bounds[w.Caller.Bound()] = true
			default:
				calls++
			}
		}
	}
	return calls != k.waiters.patient || len(bounds) != int(k.futures.callers.n)
}

// IdleFutures returns how many futures of k are idle.
func (k *Key) IdleFutures() int { return int(k.futures.idle.n) }

// Admits reports whether the reader w could join a tenure of k without the store.
func (k *Key) Admits(w *Waiter, now watchdog.Instant) bool { return k.open(w, now) != nil }

// Permits returns how many permits k has, and whether it passes on what comes free of them.
func (k *Key) Permits(now watchdog.Instant) (kept int32, stale, passes bool) {
	s := &k.stakes
	return s.holding.block.kept, s.holding.block.stale, s.mayPassOn(now)
}
