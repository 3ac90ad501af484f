// SPDX-License-Identifier: Apache-2.0

package machine

import (
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
	switch {
	case k.owner != call.Request().Owner:
		k.lateAnswer(call, reply, now, fx)
	case k.holding != nil:
		k.answerWhileHolding(call, reply, now, fx)
	default:
		k.answerWhileWaiting(call, reply, now, fx)
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
func (k *Key) answerWhileHolding(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	h := k.holding
	h.inFlight--
	h.uncertain = h.uncertain || failure.MayTakeEffect(reply.Err)
	if reply.Err == nil && reply.Status == store.Granted {
		k.confirmed(call, reply, now, fx)
	}
}

func (k *Key) answerWhileWaiting(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	a := k.attempt
	a.inFlight--
	if reply.Err != nil {
		k.requestFailed(call, reply.Err, now, fx)
		return
	}
	a.watched = a.watched || call.Request().NotifyQueued
	a.unnotified = a.unnotified || !reply.WillNotify
	if reply.Status == store.Granted {
		k.granted(call, reply, now, fx)
		return
	}
	a.answered(call, now)
	switch reply.Status {
	case store.Waiting:
		k.stillWaiting(call, reply, now, fx)
	case store.Held:
		k.refused(call, reply, now, fx)
	case store.Full:
		k.refuseFirst(ErrQueueFull, now, fx)
	case store.Withdrawn:
		k.forgetOwner(fx)
		k.contendOrDrop(now, fx)
	default:
		k.failAll(store.ErrForeignData, now, fx)
	}
}

// granted makes this client the holder, unless the answer took so long that too little trust is left:
// W3.
func (k *Key) granted(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	ttl := ttlThatCounts(call.Request().TTL, reply.TTL)
	deadline := trustUntil(call.Sent, ttl)
	fx.measured(call.Sent, ttlThatCounts(k.terms.TTL, reply.TTL))
	if tooLate(deadline.Sub(now), ttl) {
		k.grantedTooLate(call, tooSlow(now.Sub(call.Sent), ttl), now, fx)
		return
	}
	k.hold(grant{reply.Grant, ttl, call.Sent, deadline, reply.Waiters}, now, fx)
}

// stillWaiting handles the answer that the attempt is in the queue. (W2) Base and mark only move
// forward, because answers may overtake each other.
func (k *Key) stillWaiting(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	a := k.attempt
	a.base = max(a.base, call.Sent)
	a.mark = max(a.mark, reply.Mark)
	a.ticket = reply.Ticket
	a.blocker, a.grace = nil, 0
	if reply.Grace > 0 && reply.HolderToken == 0 && reply.Holder == "" {
		a.grace = now.Add(reply.Grace)
		a.settle(fx, &store.GraceError{Remaining: reply.Grace})
	} else {
		a.blocker = &HeldError{
			Holder: reply.Holder, Token: reply.HolderToken,
			Remaining: reply.Remaining, Waiters: reply.Rank + 1, // this client is one of them
		}
		a.settle(fx, a.blocker)
	}
	if a.again {
		k.requestAgain(fx)
		return
	}
	fx.setAlarm(now.Add(k.recheckIn(reply)))
}

// refused ends a TryLock. If the holder was notified, it lets the TryLock make its second request
// instead.
func (k *Key) refused(call *Acquire, reply *store.AcquireReply, now watchdog.Instant, fx *Effects) {
	if reply.HolderNotified && call.First {
		k.secondTry(call, now, fx)
		return
	}
	held := &HeldError{
		Holder: reply.Holder, Token: reply.HolderToken,
		Remaining: reply.Remaining, Waiters: reply.Waiters,
	}
	k.attempt.settle(fx, held)
	k.refuseFirst(held, now, fx)
}

// secondTry prepares the second try after a refusal. A caller of TryLock waits and makes it. For a
// future the watchdog does.
func (k *Key) secondTry(first *Acquire, now watchdog.Instant, fx *Effects) {
	if !k.waiters.first.Future {
		first.Again = true
		return
	}
	k.requestAt(now.Add(SecondTry(now.Sub(first.Sent), first.Timeout)), now, fx)
}

// recheckIn is W9: a waiter repeats its request at every heartbeat. The first waiter in the store's
// queue also repeats it as soon as the holder's TTL will have expired. This is how a dead holder is
// noticed.
func (k *Key) recheckIn(reply *store.AcquireReply) time.Duration {
	wait := jitter(heartbeat(k.terms.TTL))
	if reply.Rank == 0 && reply.Remaining >= 0 {
		wait = min(wait, reply.Remaining+time.Millisecond+rand.N(4*time.Millisecond))
	}
	if reply.Recheck > 0 {
		wait = min(wait, reply.Recheck)
	}
	return wait
}

// refuseFirst fails the first waiter, which the store has refused, and lets the next waiter try.
func (k *Key) refuseFirst(err error, now watchdog.Instant, fx *Effects) {
	fx.fail(k.waiters.pop(), err)
	if k.attempt.uncertain || k.attempt.inFlight > 0 {
		k.abandon(now, fx) // an earlier request may still join the queue
	} else {
		k.forgetOwner(fx)
	}
	k.contendOrDrop(now, fx)
}

// requestFailed handles a request that was not answered or was refused.
func (k *Key) requestFailed(call *Acquire, err error, now watchdog.Instant, fx *Effects) {
	a := k.attempt
	a.uncertain = a.uncertain || failure.MayTakeEffect(err)
	a.unnotified = true // in case it takes effect: nobody knows whether others request the key
	if !failure.Transient(err) {
		k.failAll(err, now, fx)
		return
	}
	wait := call.Request().Wait
	switch {
	case call.Ended && wait:
		// This failure says nothing about the store. The next waiter sends a request as soon as
		// this one has left.
		a.again = true
		k.requestAt(now.Add(heartbeat(k.terms.TTL)), now, fx)
		return
	case call.Ended:
	default:
		k.failed(call, err, now)
		a.settle(fx, failure.Unreachable(err))
	}
	if !wait {
		fx.fail(k.waiters.pop(), failure.Unreachable(err))
		k.abandon(now, fx)
		k.contendAfter(a.trouble, now, fx)
		return
	}
	if k.giveUp(now, fx) {
		k.watchTrouble(now, fx)
	}
}

// failAll gives every waiter of the key the same error.
func (k *Key) failAll(err error, now watchdog.Instant, fx *Effects) {
	fx.note(slog.LevelWarn, "waiting for a key failed",
		slog.String("key", k.Name), slog.Int("waiters", k.waiters.n), slog.Any("error", err))
	k.attempt.settle(fx, err)
	for w := k.waiters.pop(); w != nil; w = k.waiters.pop() {
		fx.fail(w, err)
	}
	k.abandon(now, fx)
	fx.Dropped = true
}
