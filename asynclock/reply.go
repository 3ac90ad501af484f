// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// onAcquire handles the answer to a request.
func (c *Client) onAcquire(call *acquireCall, reply *store.AcquireReply) {
	s := call.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	s.onAcquireLocked(call, reply)
}

// onAcquireLocked handles a reply. Meanwhile its attempt may have ended, or a notification may have
// made this client the holder.
func (s *keyState) onAcquireLocked(call *acquireCall, reply *store.AcquireReply) {
	switch {
	case s.owner != call.request.Owner:
		s.lateReplyLocked(call, reply)
	case s.holding != nil:
		s.replyWhileHoldingLocked(call, reply)
	default:
		s.replyWhileWaitingLocked(call, reply)
	}
}

// lateReplyLocked handles a reply for an attempt that is over. (W7) If the attempt was withdrawn
// but this request took the key, the key is released at once instead of being left to expire. If
// the attempt became a holding, nothing is done: its release may have held the key back, or its
// holder may not have noticed the loss.
func (s *keyState) lateReplyLocked(call *acquireCall, reply *store.AcquireReply) {
	if reply.Err == nil && reply.Status == store.Granted && !call.attempt.held {
		s.client.withdraw(store.ReleaseRequest{Key: s.key, Owner: call.request.Owner}, call.request.TTL)
	}
}

// replyWhileHoldingLocked handles a reply after a notification that overtook it: W6.
func (s *keyState) replyWhileHoldingLocked(call *acquireCall, reply *store.AcquireReply) {
	h := s.holding
	h.inFlight--
	h.uncertain = h.uncertain || mayTakeEffect(reply.Err)
	if reply.Err == nil && reply.Status == store.Granted {
		s.confirmedLocked(call, reply)
	}
}

func (s *keyState) replyWhileWaitingLocked(call *acquireCall, reply *store.AcquireReply) {
	a := s.attempt
	a.inFlight--
	if reply.Err != nil {
		s.attemptFailedLocked(call, reply.Err)
		return
	}
	a.watched = a.watched || call.request.NotifyQueued
	a.unnotified = a.unnotified || !reply.WillNotify
	if reply.Status == store.Granted {
		s.grantedLocked(call, reply)
		return
	}
	a.answeredLocked(call)
	switch reply.Status {
	case store.Waiting:
		s.stillWaitingLocked(call, reply)
	case store.Held:
		s.refusedLocked(call, reply)
	case store.Full:
		s.refuseFirstLocked(ErrQueueFull)
	case store.Withdrawn:
		s.forgetOwnerLocked()
		s.contendOrDropLocked()
	default:
		s.failAllLocked(ErrForeignData)
	}
}

// grantedLocked makes this client the holder, unless the reply took so long that too little
// trust is left: W3.
func (s *keyState) grantedLocked(call *acquireCall, reply *store.AcquireReply) {
	ttl := ttlThatCounts(call.request.TTL, reply.TTL)
	deadline := trustUntil(call.sent, ttl)
	now := watchdog.Refresh()
	s.client.trips.measured(call.sent, now, ttlThatCounts(s.settings.ttl, reply.TTL), s.client.log)
	if tooLate(deadline.Sub(now), ttl) {
		s.grantedTooLateLocked(call, tooSlow(now.Sub(call.sent), ttl), now)
		return
	}
	s.holdLocked(reply.Grant, ttl, call.sent, deadline, reply.Waiters)
}

// stillWaitingLocked handles the answer that the attempt is in the queue. (W2) Base and mark only
// move forward, because replies may overtake each other.
func (s *keyState) stillWaitingLocked(call *acquireCall, reply *store.AcquireReply) {
	a := s.attempt
	a.base = max(a.base, call.sent)
	a.mark = max(a.mark, reply.Mark)
	a.ticket = reply.Ticket
	now := watchdog.Refresh()
	a.blocker, a.grace = nil, 0
	if reply.Grace > 0 && reply.HolderToken == 0 && reply.Holder == "" {
		a.grace = now.Add(reply.Grace)
		a.settleLocked(&GraceError{Remaining: reply.Grace})
	} else {
		a.blocker = &HeldError{
			Key: s.key, Holder: reply.Holder, Token: reply.HolderToken,
			Remaining: reply.Remaining, Waiters: reply.Rank + 1, // this client is one of them
		}
		a.settleLocked(a.blocker)
	}
	if a.again {
		s.requestAgainLocked()
		return
	}
	s.client.watchdog.Set(&s.entry, now.Add(s.recheckIn(reply)))
}

// refusedLocked ends a TryLock. If the holder was notified, it lets the TryLock make its second
// request instead.
func (s *keyState) refusedLocked(call *acquireCall, reply *store.AcquireReply) {
	if reply.HolderNotified && call.first {
		s.secondTryLocked(call)
		return
	}
	held := HeldError{
		Key: s.key, Holder: reply.Holder, Token: reply.HolderToken,
		Remaining: reply.Remaining, Waiters: reply.Waiters,
	}
	s.attempt.settleLocked(&held)
	first := held // the caller may change it
	s.refuseFirstLocked(&first)
}

// recheckIn is W9: a waiter repeats its request at every heartbeat. The first waiter in the store's
// queue also repeats it as soon as the holder's TTL will have expired. This is how a dead holder is
// noticed.
func (s *keyState) recheckIn(reply *store.AcquireReply) time.Duration {
	wait := jitter(heartbeat(s.settings.ttl))
	if reply.Rank == 0 && reply.Remaining >= 0 {
		wait = min(wait, reply.Remaining+time.Millisecond+rand.N(4*time.Millisecond))
	}
	if reply.Recheck > 0 {
		wait = min(wait, reply.Recheck)
	}
	return wait
}

// refuseFirstLocked fails the first waiter, which the store has refused, and lets the next waiter
// try.
func (s *keyState) refuseFirstLocked(err error) {
	s.waiters.pop().failLocked(err)
	if s.attempt.uncertain || s.attempt.inFlight > 0 {
		s.abandonLocked() // an earlier request may still join the queue
	} else {
		s.forgetOwnerLocked()
	}
	s.contendOrDropLocked()
}

// attemptFailedLocked handles a request that was not answered or was refused.
func (s *keyState) attemptFailedLocked(call *acquireCall, err error) {
	a := s.attempt
	a.uncertain = a.uncertain || mayTakeEffect(err)
	a.unnotified = true // in case it takes effect: nobody knows whether others request the key
	if !transient(err) {
		s.failAllLocked(err)
		return
	}
	now := watchdog.Now()
	switch {
	case call.ended && call.request.Wait:
		// This failure says nothing about the store. The next waiter sends a request as soon as
		// this one has left.
		a.again = true
		s.requestAtLocked(now.Add(heartbeat(s.settings.ttl)), now)
		return
	case call.ended:
	default:
		s.failedLocked(call, err, now)
		a.settleLocked(unreachable(err))
	}
	if !call.request.Wait {
		s.waiters.pop().failLocked(unreachable(err))
		s.abandonLocked()
		s.contendAfterLocked(a.trouble)
		return
	}
	if s.giveUpLocked(now) {
		s.watchTroubleLocked(now)
	}
}

// failAllLocked gives every waiter of the key the same error.
func (s *keyState) failAllLocked(err error) {
	s.client.log.Add(slog.LevelWarn, "waiting for a key failed",
		slog.String("key", s.key), slog.Int("waiters", s.waiters.n), slog.Any("error", err))
	s.attempt.settleLocked(err)
	for w := s.waiters.pop(); w != nil; w = s.waiters.pop() {
		w.failLocked(err)
	}
	s.abandonLocked()
	s.dropLocked()
}

// abandonLocked ends the attempt and leaves the store's queue, in the background. It also gives back
// a key that the store has granted.
func (s *keyState) abandonLocked() {
	if s.attempt.asked {
		s.client.withdraw(store.ReleaseRequest{
			Key: s.key, Owner: s.owner, Uncertain: s.attempt.uncertain || s.attempt.inFlight > 0,
		}, s.settings.ttl)
	}
	s.forgetOwnerLocked()
}
