// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Answer handles the store's answer to a request. Meanwhile its attempt may have ended, or a
// notification may have made this client the holder.
func (k *Key) Answer(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	s := k.stakeOf(call.Request().Owner)
	switch {
	case s == nil:
		k.lateAnswer(call, reply, now, fx)
	case s.holding != nil:
		s.answerWhileHolding(call, reply, now, fx)
	default:
		s.answerWhileWaiting(call, reply, now, fx)
	}
}

// lateAnswer handles an answer for an attempt that is over. (W7) If the attempt was withdrawn but this
// request took the key, the key is released at once instead of being left to expire. If the attempt
// became a holding, nothing is done: its release may have held the key back, or its holder may not
// have noticed the loss.
func (k *Key) lateAnswer(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	if reply.Err == nil && reply.Status == store.Granted && !call.attempt.held {
		request := call.Request()
		k.withdraw(store.ReleaseRequest{Key: k.Name, Owner: request.Owner}, request.TTL, now, fx)
	}
}

// answerWhileHolding handles an answer after a notification that overtook it: W6.
func (s *stake) answerWhileHolding(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	h := s.holding
	h.inFlight--
	h.uncertain = h.uncertain || failure.MayTakeEffect(reply.Err)
	if reply.Err == nil && reply.Status == store.Granted {
		s.confirmed(call, reply, now, fx)
	}
}

func (s *stake) answerWhileWaiting(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	a := s.attempt
	a.inFlight--
	if reply.Err != nil {
		s.requestFailed(call, reply.Err, now, fx)
		return
	}
	a.watched = a.watched || call.Request().NotifyQueued
	if reply.Limit > 0 {
		a.limit = reply.Limit
	}
	a.unnotified = a.unnotified || !reply.WillNotify
	if reply.Status == store.Granted {
		s.granted(call, reply, now, fx)
		return
	}
	a.answered(call, now)
	switch reply.Status {
	case store.Waiting:
		s.stillWaiting(call, reply, now, fx)
	case store.Held:
		s.refused(call, reply, now, fx)
	case store.Full:
		s.refuseFirst(ErrQueueFull, now, fx)
	case store.TooMuch:
		s.refuseTooMuch(call, reply.Limit, now, fx)
	case store.Withdrawn:
		s.forgetOwner()
		s.key.serve(nil, now, fx)
	default:
		s.failAll(store.ErrForeignData, now, fx)
	}
}

// granted makes this client the holder, unless the answer took so long that too little trust is left:
// W3.
func (s *stake) granted(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	ttl := ttlThatCounts(call.Request().TTL, reply.TTL)
	deadline := trustUntil(call.Sent, ttl)
	fx.measured(call.Sent, ttlThatCounts(s.terms.TTL, reply.TTL))
	if tooLate(deadline.Sub(now), ttl) {
		s.grantedTooLate(call, tooSlow(now.Sub(call.Sent), ttl), now, fx)
		return
	}
	s.hold(grant{reply.Grant, ttl, call.Sent, deadline, reply.Waiters, false}, now, fx)
}

// stillWaiting handles the answer that the attempt is in the queue. (W2) Base and mark only move
// forward, because answers may overtake each other.
func (s *stake) stillWaiting(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	a := s.attempt
	a.base = max(a.base, call.Sent)
	a.mark = max(a.mark, reply.Mark)
	a.ticket = reply.Ticket
	a.blocker, a.grace = nil, 0
	if reply.Grace > 0 && reply.HolderToken == 0 && reply.Holder == "" {
		a.grace = now.Add(reply.Grace)
	} else {
		a.blocker = &HeldError{
			Holder: reply.Holder, Token: reply.HolderToken,
			Remaining: reply.Remaining, Waiters: reply.Rank + 1, // this client is one of them
			Used: reply.Used, Limit: int(reply.Limit),
		}
	}
	s.key.refuseTries(func(w *Waiter) error { return s.key.Obstacle(w, now) }, fx) // T2
	if !s.serves(s.key.waiters.first) {                                            // a store that can't refuse has told a try to wait
		s.beginAnew(nil, now, fx)
		return
	}
	if a.again {
		s.requestAgain(fx)
		return
	}
	a.due = now.Add(s.recheckIn(reply))
}

// refused ends a TryLock, and all that want no less or came before the request: T2. If the holder was notified, the watchdog makes the second
// request instead: the holder's client may only retain the key, and will have given it back by then.
func (s *stake) refused(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	if reply.HolderNotified && call.First {
		s.requestAt(now.Add(secondTry(now.Sub(call.Sent), call.Timeout)), now)
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
	}, fx)
	s.refuseFirst(&held, now, fx)
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

// refuseFirst fails the first waiter, which the store has refused, and lets the next waiter try.
func (s *stake) refuseFirst(err error, now watchdog.Instant, fx *Effects) {
	fx.fail(s.key.waiters.pop(), err)
	if s.attempt.uncertain || s.attempt.inFlight > 0 {
		s.beginAnew(nil, now, fx) // an earlier request may still join the queue
		return
	}
	s.forgetOwner()
	s.key.serve(nil, now, fx)
}

// requestFailed handles a request that was not answered or was refused.
func (s *stake) requestFailed(call *Acquire, err error, now watchdog.Instant, fx *Effects) {
	a := s.attempt
	a.uncertain = a.uncertain || failure.MayTakeEffect(err)
	a.unnotified = true // in case it takes effect: nobody knows whether others request the key
	switch {
	case errors.Is(err, store.ErrUnsupported): // what the first waiter asks for; others may ask for less
		s.refuseFirst(err, now, fx)
		return
	case !failure.Transient(err):
		s.failAll(err, now, fx)
		return
	}
	switch {
	case call.Ended && call.Request().Wait:
		// This failure says nothing about the store. The next waiter sends a request as soon as
		// this one has left.
		a.again = true
		s.requestAt(now.Add(heartbeat(s.terms.TTL)), now)
		return
	case call.Ended: // nor that of a try: the next one asks again, as the same owner
		fx.fail(s.key.waiters.pop(), failure.Unreachable(err))
		if s.serves(s.key.waiters.first) {
			fx.acquires.push(s.firstRequest())
			return
		}
		s.beginAnew(a.trouble, now, fx)
		return
	default:
		s.failed(call, err, now)
		s.key.refuseTries(func(*Waiter) error { return failure.Unreachable(err) }, fx)
	}
	if s.giveUp(now, fx) {
		s.watchTrouble(now)
	}
}

// failAll gives every waiter of the key the same error.
func (s *stake) failAll(err error, now watchdog.Instant, fx *Effects) {
	fx.note(slog.LevelWarn, "waiting for a key failed",
		slog.String("key", s.key.Name), slog.Int("waiters", int(s.key.waiters.n)), slog.Any("error", err))
	for w := s.key.waiters.pop(); w != nil; w = s.key.waiters.pop() {
		fx.fail(w, err)
	}
	s.beginAnew(nil, now, fx)
}
