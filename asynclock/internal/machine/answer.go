// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
)

// Answer handles the store's answer to a request. Meanwhile its attempt may have ended, or a
// notification may have made this client the holder.
func (k *Key) Answer(call *Acquire, reply *store.AcquireReply, st *Step) {
	defer k.reconcile(st)
	s := k.stakeOf(call.Request().Owner)
	switch {
	case s == nil:
		k.lateAnswer(call, reply, st)
	case s.holding != nil:
		s.answerWhileHolding(call, reply, st)
	default:
		s.answerWhileWaiting(call, reply, st)
	}
}

// lateAnswer handles an answer for an attempt that is over. (W7) If the attempt was withdrawn but this
// request took the key, the key is released at once instead of being left to expire. If the attempt
// became a holding, nothing is done: its release may have held the key back, or its holder may not
// have noticed the loss.
func (k *Key) lateAnswer(call *Acquire, reply *store.AcquireReply, st *Step) {
	if reply.Err == nil && reply.Status == store.Granted && !call.attempt.held {
		request := call.Request()
		k.withdraw(store.ReleaseRequest{Key: k.Name, Owner: request.Owner}, request.TTL, st)
	}
}

// answerWhileHolding handles an answer after a notification that overtook it: W6.
func (s *stake) answerWhileHolding(call *Acquire, reply *store.AcquireReply, st *Step) {
	h := s.holding
	h.inFlight--
	h.uncertain = h.uncertain || failure.MayTakeEffect(reply.Err)
	if reply.Err == nil && reply.Status == store.Granted {
		s.confirmed(call, reply, st)
	}
}

func (s *stake) answerWhileWaiting(call *Acquire, reply *store.AcquireReply, st *Step) {
	a := s.attempt
	a.inFlight--
	if reply.Err != nil {
		s.requestFailed(call, reply.Err, st)
		return
	}
	a.known = true
	a.watched = a.watched || call.Request().NotifyQueued
	if reply.Limit > 0 {
		a.limit = reply.Limit
	}
	a.unnotified = a.unnotified || !reply.WillNotify
	if reply.Status == store.Granted {
		s.granted(call, reply, st)
		return
	}
	a.answered(call, st.Now)
	switch reply.Status {
	case store.Waiting:
		s.stillWaiting(call, reply, st)
	case store.Held:
		s.refused(call, reply, st)
	case store.Full:
		s.refuseFirst(ErrQueueFull, st)
	case store.TooMuch:
		s.refuseTooMuch(call, reply.Limit, st)
	case store.Withdrawn:
		s.forgetOwner()
	default:
		s.failAll(store.ErrForeignData, st)
	}
}

// granted makes this client the holder, unless the answer took so long that too little trust is left:
// W3.
func (s *stake) granted(call *Acquire, reply *store.AcquireReply, st *Step) {
	ttl := ttlThatCounts(call.Request().TTL, reply.TTL)
	deadline := trustUntil(call.Sent, ttl)
	st.measured(call.Sent, ttlThatCounts(s.terms.TTL, reply.TTL))
	if tooLate(deadline.Sub(st.Now), ttl) {
		s.grantedTooLate(call, tooSlow(st.Now.Sub(call.Sent), ttl), st)
		return
	}
	s.hold(grant{reply.Grant, ttl, call.Sent, deadline, reply.Waiters, false}, st)
}

// stillWaiting handles the answer that the attempt is in the queue. (W2) Base and mark only move
// forward, because answers may overtake each other.
func (s *stake) stillWaiting(call *Acquire, reply *store.AcquireReply, st *Step) {
	a := s.attempt
	a.base = max(a.base, call.Sent)
	a.mark = max(a.mark, reply.Mark)
	a.ticket = reply.Ticket
	if first := s.key.waiters.first; first != nil && first == a.began {
		first.Place = reply.Ticket // who comes after it has not waited as long
	}
	a.began = nil
	a.blocker, a.grace = nil, 0
	if reply.Grace > 0 && reply.HolderToken == 0 && reply.Holder == "" {
		a.grace = st.Now.Add(reply.Grace)
	} else {
		a.blocker = &HeldError{
			Holder: reply.Holder, Token: reply.HolderToken,
			Remaining: reply.Remaining, Waiters: reply.Rank + 1, // this client is one of them
			Used: reply.Used, Limit: int(reply.Limit),
		}
	}
	s.key.refuseTries(func(w *Waiter) error { return s.key.Obstacle(w, st.Now) }, st) // T2
	switch {
	case !s.serves(s.key.waiters.first): // a store that can't refuse has told a try to wait
		s.abandon(nil, st)
	case a.again:
		s.requestAgain(st)
	default:
		a.due = st.Now.Add(s.recheckIn(reply))
	}
}

// refused ends a TryLock, and all that want no less or came before the request: T2. If the holder was notified, the watchdog makes the second
// request instead: the holder's client may only retain the key, and will have given it back by then.
func (s *stake) refused(call *Acquire, reply *store.AcquireReply, st *Step) {
	if reply.HolderNotified && call.First {
		s.requestAt(st.Now.Add(secondTry(st.Now.Sub(call.Sent), call.Timeout)), st.Now)
		return
	}
	held := HeldError{
		Holder: reply.Holder, Token: reply.HolderToken,
		Remaining: reply.Remaining, Waiters: reply.Waiters,
		Used: reply.Used, Limit: int(reply.Limit),
	}
	first := s.key.waiters.first
	s.key.refuseTries(func(w *Waiter) error {
		if w == first || w.since == s.key.requests && !w.wantsNoLess(call.Request().Share) {
			return nil
		}
		return w.told(held)
	}, st)
	s.refuseFirst(&held, st)
}

// recheckIn is W9: a waiter repeats its request at every heartbeat. The first waiter in the store's
// queue also repeats it as soon as the holder's TTL will have expired. This is how a dead holder is
// noticed.
func (s *stake) recheckIn(reply *store.AcquireReply) time.Duration {
	wait := jitter(heartbeat(s.terms.TTL))
	if reply.Rank == 0 && reply.Remaining >= 0 && reply.Remaining < wait { // it may be centuries, to which nothing can be added
		wait = min(wait, reply.Remaining+time.Millisecond+rand.N(4*time.Millisecond))
	}
	if reply.Recheck > 0 {
		wait = min(wait, reply.Recheck)
	}
	return wait
}

// refuseFirst fails the first waiter, which the store has refused. The next one has an attempt of its own.
func (s *stake) refuseFirst(err error, st *Step) {
	st.fail(s.key.waiters.pop(), err)
	if s.attempt.uncertain || s.attempt.inFlight > 0 {
		s.abandon(nil, st) // an earlier request may still join the queue
		return
	}
	s.forgetOwner()
}

// requestFailed handles a request that was not answered or was refused.
func (s *stake) requestFailed(call *Acquire, err error, st *Step) {
	a := s.attempt
	a.uncertain = a.uncertain || failure.MayTakeEffect(err)
	a.unnotified = true // in case it takes effect: nobody knows whether others request the key
	switch {
	case errors.Is(err, store.ErrUnsupported): // what the first waiter asks for; others may ask for less
		s.refuseFirst(err, st)
		return
	case !failure.Transient(err):
		s.failAll(err, st)
		return
	}
	switch {
	case call.Ended && call.Request().Wait:
		// This failure says nothing about the store. The next waiter sends a request as soon as
		// this one has left.
		a.unasked = s.key.waiters.first
		s.requestAt(st.Now.Add(heartbeat(s.terms.TTL)), st.Now)
		return
	case call.Ended: // nor that of a try: the next one asks again, as the same owner
		st.fail(s.key.waiters.pop(), failure.Unreachable(err))
		if s.serves(s.key.waiters.first) {
			st.acquires.push(s.firstRequest())
		}
		return
	default:
		a.unasked = nil
		s.failed(call, err, st)
		s.key.refuseTries(func(*Waiter) error { return failure.Unreachable(err) }, st)
	}
	if s.giveUp(st) {
		s.watchTrouble(st.Now)
	}
}

// failAll gives every waiter of the key the same error.
func (s *stake) failAll(err error, st *Step) {
	st.note(slog.LevelWarn, "waiting for a key failed",
		slog.String("key", s.key.Name), slog.Int("waiters", int(s.key.waiters.n)), slog.Any("error", err))
	for w := s.key.waiters.pop(); w != nil; w = s.key.waiters.pop() {
		st.fail(w, err)
	}
}
