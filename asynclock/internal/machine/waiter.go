// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Waiter is one pending acquisition of a caller.
type Waiter struct {
	Caller Caller
	Terms  *Terms
	Since  watchdog.Instant // when it began to wait
	Lease  *Lease           // set once it has one; of a joining waiter the lease to join
	Err    error            // set once ended

	// Ticket is the place that it brings from another key's queue, and Place the one that it had in this queue.
	Ticket, Place int64

	Weight int32 // Permits: how many it wants
	Stage  Stage
	Future bool // its caller may never receive what it gets
	Part   bool // what it gets may be given back before its caller has it
	Try    bool // never waits

	since   uint32  // how many requests of the key were made before it came
	seen    bool    // its caller has looked at the result
	decided bool    // is in the list of decided waiters
	Had     bool    // its caller has had a lease
	Way     Way     // how its lease has come, once it has one
	ahead   *Waiter // in one of the key's queues
	behind  *Waiter // likewise
	next    *Waiter // in the list of decided waiters
}

func (w *Waiter) link() **Waiter { return &w.next }

// NeedsTies reports whether a lease of w will have ties of its own, as far as that is known before.
func (w *Waiter) NeedsTies() bool {
	t := w.Terms
	return w.Future || w.Stage == Joining || t.Mode != store.Exclusive || t.MinHold > 0 || t.MaxHold > 0
}

// A Stage is the progress of a waiter.
type Stage uint8

// The stages of a Waiter.
const (
	Queued  Stage = iota // in the key's queue
	Joining              // the caller is under a lease of the key, which Join shares
	Idle                 // a future that nobody received from when it could have had the key
	Lying                // its lease lies in its channel; perhaps somebody has received it
	Claimed              // the lease is the caller's
	Ended                // has an error instead
)

// Arrive adds a waiter. Its request may be among the effects. If Arrive fails, with ErrQueueFull or with what keeps
// out a waiter that never waits, the waiter was not added.
func (k *Key) Arrive(w *Waiter, st *Step) error {
	defer k.reconcile(st)
	k.needsFutures(w)
	if w.Future {
		k.futures.arrives(st.Now)
	}
	k.used = true
	if !k.hasRoomFor(w) {
		k.sweep(mostTries, st)
		k.follow(st)
	}
	var free *stake
	if k.waiters.first == nil || k.mayOvertake(w, st.Now) {
		free = k.takeUp(w, st)
	}
	if free == nil {
		if err := k.mayQueue(w, st.Now); err != nil {
			return err
		}
	}
	w.Since, w.since = st.Now, k.requests
	if free == nil || free.isBlock() { // permits lie with one after the other, and in the end with w
		k.waiters.push(w)
	} else {
		k.waiters.pushFront(w)
	}
	if free != nil {
		free.retake(st)
	} else if s := k.contender(); s != nil {
		s.arrived(w, st)
	}
	if w.Future {
		k.sweep(fewSwept, st)
	}
	return nil
}

// arrived handles that w has come to those for whom the stake contends.
func (s *stake) arrived(w *Waiter, st *Step) {
	s.shareTrouble(w)
	if a := s.attempt; w.Try && a.inFlight == 0 && a.blocker == nil && a.grace != 0 {
		s.requestAgain(st) // T1: the grace is over, and the next heartbeat may be far
	}
}

// hasRoomFor reports whether the limit of the queue lets w wait. Those that never wait are not counted. The futures of one
// context count once: a loop around a select leaves one behind in each turn, and only a collection tells that it is gone.
func (k *Key) hasRoomFor(w *Waiter) bool {
	callers := &k.futures.callers
	return int(k.waiters.patient+callers.n) < w.Terms.QueueLimit || w.Future && !w.Try && callers.has(w.Caller.Bound())
}

// mayQueue returns an error for a waiter that can't be added to those of the key.
func (k *Key) mayQueue(w *Waiter, now watchdog.Instant) error {
	switch {
	case k.waiters.first == nil && k.open(w, now) != nil:
	case w.Try:
		return k.keepsOut(w, now)
	case k.hasNothing() && k.futures.idle.n == 0:
	case !k.hasRoomFor(w):
		return ErrQueueFull
	}
	return nil
}

// Obstacle returns what keeps w from the key, as far as the client knows. If somebody has the key, that is a
// *HeldError. It returns nil if the store has not answered yet.
func (k *Key) Obstacle(w *Waiter, now watchdog.Instant) error {
	s := k.contender()
	if s == nil {
		return k.ourHolding(w, now)
	}
	a := s.attempt
	left := a.grace.Sub(now)
	switch {
	case a.trouble != nil && !a.trouble.queued:
		return failure.Unreachable(a.trouble.err) // the key may be free
	case left > 0:
		return &store.GraceError{Remaining: left}
	case a.blocker != nil:
		held := *a.blocker
		if held.Remaining > 0 {
			held.Remaining = max(held.Remaining-now.Sub(a.base), 0)
		}
		return w.told(held)
	}
	return nil
}

// told returns what w learns of who holds the key. Only a request for permits learns how many of them are out.
func (w *Waiter) told(held HeldError) *HeldError {
	if w.Terms.Mode != store.Permits {
		held.Used, held.Limit = 0, 0
	}
	return &held
}

// ourHolding describes what this client has of the key, to w, which it keeps out. It returns nil if the client has
// nothing.
func (k *Key) ourHolding(w *Waiter, now watchdog.Instant) error {
	if k.hasNothing() {
		return nil
	}
	held := new(HeldError)
	for s := &k.stakes; s != nil; s = s.next {
		if s.holding != nil && (held.Holder == "" || s.holding.token() > held.Token) {
			*held = HeldError{Holder: s.terms.Holder, Token: s.holding.token(), Remaining: s.remaining(now)}
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

// Leave ends one waiter with err, at any stage. A lease that lies with it goes to the next waiter. A lease that
// somebody has received stays the receiver's.
func (k *Key) Leave(w *Waiter, err error, st *Step) {
	defer k.reconcile(st)
	switch w.Stage {
	case Lying:
		s := k.stakeOf(w.Lease.Owner)
		if s.takeBack(w.Lease, st) {
			st.fail(w, err)
			s.lessOne(st)
		}
	case Queued:
		k.waiters.remove(w)
		st.fail(w, err)
	case Idle:
		k.futures.idle.remove(w)
		st.fail(w, err)
	case Joining, Claimed, Ended:
	}
}

// TurnAway answers every waiter with err, takes back what lies, and gives a retained key back.
func (k *Key) TurnAway(err error, st *Step) {
	defer k.reconcile(st)
	k.turnAll(err, st)
	for s := &k.stakes; s != nil; {
		next := s.next
		switch {
		case s.holding == nil:
		case s.isRetained():
			s.releaseRetained(st)
		case s.holding.lease.lying != nil || s.holding.lease.lies > 0:
			s.recall(st)
			k.turnAll(err, st)
			s.lessOne(st)
		}
		s = next
	}
}

// turnAll fails all who have no lease.
func (k *Key) turnAll(err error, st *Step) {
	for w := k.waiters.pop(); w != nil; w = k.waiters.pop() {
		st.fail(w, err)
	}
	for w := k.futures.idle.pop(); w != nil; w = k.futures.idle.pop() {
		st.fail(w, err)
	}
}

// Received handles that a caller looks at its result. A lease that has ended before the first look is an
// error instead. Nobody is at work under it, so it counts as unlocked.
func (k *Key) Received(w *Waiter, st *Step) {
	defer k.reconcile(st)
	if w.Stage == Lying {
		k.stakeOf(w.Lease.Owner).claim(w, st)
	}
	if w.Stage != Claimed || w.seen {
		return
	}
	w.seen = true
	if l := w.Lease; !k.check(l, 0, st) {
		_, _ = k.unlock(l, st) // it has ended, so there is no release to send
		w.Stage, w.Err, w.Lease = Ended, l.Err, nil
	}
}
