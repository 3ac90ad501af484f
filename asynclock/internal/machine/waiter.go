// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Waiter is one pending acquisition of a caller.
type Waiter struct {
	Caller any // the shell's; the machine does not look at it
	Terms  *Terms
	Since  watchdog.Instant // when it began to wait
	Lease  *Lease           // set once granted; of a joining waiter the lease to join
	Err    error            // set once ended

	Weight int32 // Permits: how many it wants
	Stage  Stage
	Future bool // the grant must be claimed
	Try    bool // never waits

	admitted bool    // joins a tenure, not a lease that its caller is under
	decided  bool    // is in the list of decided waiters
	ahead    *Waiter // in the key's queue, or in the list of those who may join a lease
	behind   *Waiter // likewise
	next     *Waiter // in the list of decided waiters
}

func (w *Waiter) link() **Waiter { return &w.next }

// A Stage is the progress of a waiter.
type Stage uint8

// The stages of a Waiter.
const (
	Queued  Stage = iota // in the key's queue
	Joining              // the caller is under a lease of the key, which the claim will share
	Again                // its lease to join has ended, and it never waits: it has to arrive again
	Granted              // has a lease that nobody has claimed
	Claimed              // the lease is the caller's
	Ended                // has an error instead
)

// decide notes that w has a result.
func (fx *Effects) decide(w *Waiter) {
	if !w.decided {
		w.decided = true
		fx.decided.push(w)
	}
}

// fail ends the waiter with err, if it is still queued or unclaimed. The caller has already removed it
// from the queue, or has taken back its grant.
func (fx *Effects) fail(w *Waiter, err error) {
	w.Stage, w.Err, w.Lease = Ended, err, nil
	fx.decide(w)
}

// Arrive adds a waiter. Its request may be among the effects. If Arrive fails, with ErrQueueFull or
// ErrTaken, the waiter was not added.
func (k *Key) Arrive(w *Waiter, now watchdog.Instant, fx *Effects) error {
	retained := k.retainedFor(w, now)
	if !k.Idle() && retained == nil {
		if err := k.mayQueue(w, now); err != nil {
			return err
		}
	}
	w.Since = now
	k.waiters.push(w)
	if retained != nil {
		retained.retake(now, fx)
		return nil
	}
	k.admitReaders(now, fx)
	switch s := k.contender(); {
	case k.waiters.first == nil: // it was admitted
	case s != nil:
		s.joinTrouble(w, fx)
	case k.mayContend(k.waiters.first):
		call := k.unused().contend(now)
		call.First = w.Try
		fx.acquires.push(call)
	}
	return nil
}

// mayQueue returns an error for a waiter that can't be added to those of a key that is in use.
func (k *Key) mayQueue(w *Waiter, now watchdog.Instant) error {
	switch {
	case k.waiters.first == nil && k.open(w, now) != nil:
		return nil
	case w.Try && (w.Terms.Mode == store.Exclusive || k.waiters.first != nil || !k.mayContend(w)):
		return ErrTaken
	case k.waiters.n >= w.Terms.QueueLimit:
		return ErrQueueFull
	}
	return nil
}

// Asked is where the shell keeps what callers wait for that never wait for the key, as long as
// [Key.Obstacle] returns nothing. It comes back as [Effects.Asked].
func (k *Key) Asked() *any { return &k.contender().attempt.asked }

// Obstacle returns what keeps w from the key, as far as the client knows. If somebody has the key, err is
// ErrHeld. If the store has not answered yet, err is nil.
func (k *Key) Obstacle(w *Waiter, now watchdog.Instant) (held HeldError, err error) {
	s := k.contender()
	if s == nil {
		return k.ourHolding(w, now), ErrHeld
	}
	a := s.attempt
	left := a.grace.Sub(now)
	switch {
	case a.trouble != nil && !a.trouble.queued:
		return HeldError{}, failure.Unreachable(a.trouble.err) // the key may be free
	case left > 0:
		return HeldError{}, &store.GraceError{Remaining: left}
	case a.blocker != nil:
		held = *a.blocker
		if held.Remaining > 0 {
			held.Remaining = max(held.Remaining-now.Sub(a.base), 0)
		}
		if w.Terms.Mode != store.Permits {
			held.Used, held.Limit = 0, 0
		}
		return held, ErrHeld
	}
	return HeldError{}, nil
}

// ourHolding describes what this client has of the key, to w, which it keeps out.
func (k *Key) ourHolding(w *Waiter, now watchdog.Instant) (held HeldError) {
	for s := &k.stakes; s != nil; s = s.next {
		if s.holding != nil && (held.Holder == "" || s.holding.token() > held.Token) {
			held = HeldError{Holder: s.terms.Holder, Token: s.holding.token(), Remaining: s.remaining(now)}
		}
	}
	if w.Terms.Mode == store.Permits {
		kept, limit := k.kept()
		if limit == 0 { // the store has not said
			limit = w.Terms.Limit
		}
		held.Used, held.Limit = int(kept), int(limit)
	}
	return held
}

// Leave ends one waiter with err, at any stage. An unclaimed grant goes to the next waiter. A claimed
// lease stays the caller's.
func (k *Key) Leave(w *Waiter, err error, now watchdog.Instant, fx *Effects) {
	switch w.Stage {
	case Granted:
		k.stakeOf(w.Lease.Owner).revokeUnclaimed(err, now, fx)
	case Queued:
		wasFirst := k.waiters.first == w
		k.waiters.remove(w)
		fx.fail(w, err)
		if wasFirst {
			k.headChanged(now, fx)
		}
	case Joining:
		under := w.Lease
		k.stopJoining(w)
		fx.fail(w, err)
		k.leaveEmpty(under, now, fx)
	case Again, Claimed, Ended:
	}
}

// headChanged adapts the attempt to the remaining waiters. It ends the attempt if nobody waits, and
// begins a new one if the first waiter has other terms.
func (k *Key) headChanged(now watchdog.Instant, fx *Effects) {
	s := k.contender()
	if s == nil {
		if k.waiters.first != nil {
			k.serve(nil, now, fx) // P9: unlike the one before, it may have somebody to ask
		}
		return
	}
	if w := k.waiters.first; w != nil && *w.Terms == *s.terms && !s.attempt.try {
		// The waiter that left gave up; in trouble, the next request has its time. P8: the place in the
		// queue stays, for a request with another weight.
		if s.attempt.again || s.attempt.trouble == nil && w.Weight != s.attempt.weight {
			s.requestAgain(fx)
		}
		return
	}
	t := s.attempt.trouble
	s.abandon(now, fx)
	k.serve(t, now, fx)
}

// TurnAway answers every waiter with err, takes an unclaimed grant back, and gives a retained key back.
func (k *Key) TurnAway(err error, now watchdog.Instant, fx *Effects) {
	for w := k.waiters.pop(); w != nil; w = k.waiters.pop() {
		fx.fail(w, err)
	}
	k.headChanged(now, fx)
	for s := &k.stakes; s != nil; {
		next := s.next
		switch {
		case s.isRetained():
			s.releaseRetained(now, fx)
		case s.holding == nil:
		case s.holding.lease.waiter != nil:
			s.revokeUnclaimed(err, now, fx)
		case s.isTenure():
			s.revokeAdmitted(err, now, fx)
		}
		s = next
	}
}

// Claim makes a granted lease its caller's, unless the grant has ended. It checks the causes of an end
// itself, because nobody may have noticed them yet. Ended is the error of a caller whose context has
// ended.
func (k *Key) Claim(w *Waiter, ended error, now watchdog.Instant, fx *Effects) {
	switch {
	case w.Stage == Joining:
		k.claimJoined(w, ended, now, fx)
		return
	case w.Stage != Granted:
		return
	}
	s := k.stakeOf(w.Lease.Owner)
	switch {
	case ended != nil:
		s.revokeUnclaimed(ended, now, fx)
	case k.host.Closing():
		// Close takes grants back key by key, and has not reached this one yet.
		s.revokeUnclaimed(store.ErrClosed, now, fx)
	case now >= s.holding.deadline:
		s.revokeUnclaimed(ErrNotClaimed, now, fx)
	default:
		s.claim(w, now, fx)
	}
}

// A queue holds the waiters of one key in this client, in the order in which they came.
type queue struct {
	first, last *Waiter
	n           int
}

func (q *queue) push(w *Waiter) {
	w.ahead = q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.behind = w
	}
	q.last = w
	q.n++
}

func (q *queue) remove(w *Waiter) {
	if w.ahead == nil {
		q.first = w.behind
	} else {
		w.ahead.behind = w.behind
	}
	if w.behind == nil {
		q.last = w.ahead
	} else {
		w.behind.ahead = w.ahead
	}
	w.ahead, w.behind = nil, nil
	q.n--
}

func (q *queue) pop() *Waiter {
	w := q.first
	if w != nil {
		q.remove(w)
	}
	return w
}
