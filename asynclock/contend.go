// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/store"

	"github.com/asynclock/asynclock-go/watchdog"
)

// An attempt is a client's one waiter for a key in the store, on behalf of all
// its local waiters.
//
// Its rules are numbered in docs/design.md, W1 to W11. What they protect
// against is a grant that is older than it looks: the key may have been granted
// to this owner long before the message is read, and may have passed to someone
// else since.
type attempt struct {
	base   watchdog.Instant // known to precede any grant that is still unread
	mark   int64            // grants with a token up to this are older than base
	ticket int64            // our place in the store's queue

	again     bool  // ask once more when the request under way is answered
	failure   error // of the last request; nil if it was answered
	try       bool  // it is a TryLock's, which nobody else may continue
	watch     bool  // ask to be told of waiters behind our holding; once asked, always
	watched   bool  // the store has answered a request that asked so
	deaf      bool  // we might not be told who wants what this attempt leads to, or were already
	held      bool  // it led to a tenure
	uncertain bool  // some request never had an answer, and may still take effect
	inFlight  int16 // requests without an answer yet
	failures  int16 // in a row

	failing watchdog.Instant // when the first of these failures arrived
}

// An acquireCall is one request of an attempt on its way.
type acquireCall struct {
	state   *keyState
	attempt *attempt
	request store.AcquireRequest
	timeout time.Duration
	sent    watchdog.Instant

	first bool // the first of two that a TryLock may make
	again bool // it is to make the second
	ended bool // it has no answer because its caller's context ended
}

// contendLocked starts an attempt for the first waiter and returns its first
// request. W1: the owner is registered, and base is taken, before anything is
// sent.
func (s *keyState) contendLocked() *acquireCall {
	w := s.waiters.first
	s.owner = newOwner(s.shard.number)
	s.settings = w.settings
	s.shard.owners[s.owner] = s
	now := watchdog.Now()
	s.attempt = &attempt{base: now, try: w.try}
	return s.requestLocked()
}

// ttl is what the store is asked for. How long to wait follows from the setting
// instead: a lease that is to be short is no reason to be impatient.
func (s *keyState) ttl() time.Duration {
	if s.settings.maxHold == 0 {
		return s.settings.ttl
	}
	return holdTTL(s.settings.ttl, max(s.settings.maxHold, s.settings.minHold))
}

// requestLocked makes the attempt's next request.
func (s *keyState) requestLocked() *acquireCall {
	a := s.attempt
	a.inFlight++
	a.watch = a.watch || s.waiters.n > 1
	ttl := s.settings.ttl
	return &acquireCall{
		state:   s,
		attempt: a,
		request: store.AcquireRequest{
			Key:            s.key,
			Owner:          s.owner,
			TTL:            s.ttl(),
			GrantTTL:       min(grantTTL(ttl), s.ttl()),
			WaiterTTL:      grantTTL(ttl),
			Wait:           !a.try,
			QueueLimit:     s.settings.queueLimit,
			Ticket:         a.ticket,
			NotifyQueued:   a.watch,
			NotifyRequests: s.settings.retention > 0,
			Description:    s.settings.holder,
		},
		timeout: backoff.Doubled(callTimeout(ttl), int(a.failures), patience(ttl)),
		sent:    watchdog.Now(),
	}
}

// askAgainLocked sends the attempt's heartbeat, which is also how it learns of
// a grant whose message was lost. If a request is under way, its answer may have
// been decided before whatever made us ask, so another one follows it.
func (s *keyState) askAgainLocked() {
	if s.attempt.inFlight > 0 {
		s.attempt.again = true
		return
	}
	s.attempt.again = false
	s.client.send(s.requestLocked())
}

// send puts a request on its way in the background.
func (c *Client) send(call *acquireCall) {
	c.acquires.Add(laneFor(call.state.lane(), call.timeout), call)
}

// sendAcquires carries a batch of requests that no caller waits for.
func (c *Client) sendAcquires(_ int, calls []*acquireCall) {
	requests := make([]store.AcquireRequest, len(calls))
	timeout := calls[0].timeout
	now := watchdog.Now()
	for i, call := range calls {
		call.sent = now
		requests[i] = call.request
		timeout = min(timeout, call.timeout)
	}
	ctx, cancel := context.WithTimeout(c.background, timeout)
	defer cancel()
	replies := c.session.Acquire(ctx, requests)
	for i, call := range calls {
		replies[i].Err = ourTimeout(c.background, replies[i].Err)
		c.onAcquire(call, &replies[i])
	}
}

// acquire sends an attempt's first request on its caller's own goroutine, which
// saves the uncontended lock two changes of goroutine.
func (c *Client) acquire(caller context.Context, call *acquireCall) {
	ctx, cancel := c.limits.bound(caller, call.timeout)
	defer cancel()
	call.sent = watchdog.Now()
	reply := store.AcquireReply{Err: ErrOutcomeUnknown}
	// Also if the store panics, which the caller may survive: other waiters do.
	defer func() { c.onAcquire(call, &reply) }()
	reply = c.session.Acquire(ctx, []store.AcquireRequest{call.request})[0]
	call.ended = reply.Err != nil && caller.Err() != nil
	reply.Err = ourTimeout(c.background, reply.Err)
}

// onAcquire takes in the answer to a request.
func (c *Client) onAcquire(call *acquireCall, reply *store.AcquireReply) {
	s := call.state
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	s.onAcquireLocked(call, reply)
}

func (s *keyState) onAcquireLocked(call *acquireCall, reply *store.AcquireReply) {
	if s.owner != call.request.Owner {
		// The attempt is over. If it was withdrawn and this request has taken the key
		// all the same, that is given back at once rather than left to expire. (W7) What
		// became of a tenure is not ours to undo: its release may have kept the key
		// back, or its holder may not know yet that it was lost.
		if reply.Err == nil && reply.Status == store.Granted && !call.attempt.held {
			s.client.withdraw(store.ReleaseRequest{Key: s.key, Owner: call.request.Owner}, call.request.TTL)
		}
		return
	}
	if t := s.tenure; t != nil { // W6: a message was faster
		t.inFlight--
		t.uncertain = t.uncertain || mayTakeEffect(reply.Err)
		if reply.Err == nil && reply.Status == store.Granted {
			s.confirmedLocked(call, reply)
		}
		return
	}
	a := s.attempt
	a.inFlight--
	if reply.Err != nil {
		s.attemptFailedLocked(call, reply.Err)
		return
	}
	now := watchdog.Refresh()
	a.failures, a.failure = 0, nil
	a.watched = a.watched || call.request.NotifyQueued
	a.deaf = a.deaf || !reply.WillNotify
	switch reply.Status {
	case store.Granted: // W3
		ttl := ttlThatCounts(call.request.TTL, reply.TTL)
		deadline := trustUntil(call.sent, ttl)
		if tooLate(deadline.Sub(now), ttl) {
			s.askAgainLocked()
			return
		}
		s.holdLocked(reply.Grant, ttl, call.sent, deadline, reply.Waiters)
	case store.Waiting: // W2: both only move forward, for answers may overtake each other
		a.base = max(a.base, call.sent)
		a.mark = max(a.mark, reply.Mark)
		a.ticket = reply.Ticket
		if a.again {
			s.askAgainLocked()
			return
		}
		s.client.watchdog.Set(&s.entry, now.Add(s.recheckIn(reply)))
	case store.Held:
		if reply.HolderNotified && call.first {
			call.again = true
			return
		}
		s.refuseFirstLocked(&HeldError{
			Key: s.key, Holder: reply.Holder, Token: reply.HolderToken,
			Remaining: reply.Remaining, Waiters: reply.Waiters,
		})
	case store.Full:
		s.refuseFirstLocked(ErrQueueFull)
	case store.Withdrawn:
		s.forgetOwnerLocked()
		s.nextLocked()
	default:
		s.failAllLocked(ErrForeignData)
	}
}

// recheckIn is W9: a waiter always asks again at its heartbeat; the first in
// the store's queue also as soon as the holder's TTL will have run out, which is
// how a dead holder is noticed.
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

// refuseFirstLocked fails the first waiter, whom the store has refused, and
// lets the next one try.
func (s *keyState) refuseFirstLocked(err error) {
	s.waiters.pop().failLocked(err)
	if s.attempt.uncertain || s.attempt.inFlight > 0 {
		s.abandonLocked() // an earlier request may still join the queue
	} else {
		s.forgetOwnerLocked()
	}
	s.nextLocked()
}

// attemptFailedLocked handles a request that had no answer or was refused.
func (s *keyState) attemptFailedLocked(call *acquireCall, err error) {
	a := s.attempt
	a.uncertain = a.uncertain || mayTakeEffect(err)
	a.deaf = true // should it take effect, with what can't be known
	if !transient(err) {
		s.failAllLocked(err)
		return
	}
	now := watchdog.Now()
	if call.ended && call.request.Wait {
		// That says nothing about the store, whom the next waiter asks as soon as this
		// one has left.
		a.again = true
		s.client.watchdog.Set(&s.entry, now.Add(heartbeat(s.settings.ttl)))
		return
	}
	if a.failures == 0 {
		// Not from when the store was last heard: this process may have been
		// stopped since, and its first failure is then the pause's.
		a.failing = now
	}
	a.failures++
	a.failure = err
	ttl := s.settings.ttl
	if !call.request.Wait {
		s.waiters.pop().failLocked(unreachable(err))
		s.abandonLocked()
		s.nextLocked()
		return
	}
	if now.Sub(a.failing) > patience(ttl) {
		s.failAllLocked(unreachable(err))
		return
	}
	// A server that is merely slow has our earlier requests in its queue still;
	// asking ever more often would keep it there.
	wait := backoff.Doubled(50*time.Millisecond, int(a.failures-1), heartbeat(ttl))
	s.client.watchdog.Set(&s.entry, now.Add(jitter(wait)))
}

// failAllLocked gives every waiter of the key the same error.
func (s *keyState) failAllLocked(err error) {
	s.client.notes.Add(slog.LevelWarn, "waiting for a key failed",
		slog.String("key", s.key), slog.Any("error", err))
	for w := s.waiters.pop(); w != nil; w = s.waiters.pop() {
		w.failLocked(err)
	}
	s.abandonLocked()
	s.dropLocked()
}

// abandonLocked ends the attempt and leaves the store's queue, in the
// background.
func (s *keyState) abandonLocked() {
	s.client.withdraw(store.ReleaseRequest{
		Key: s.key, Owner: s.owner, Uncertain: s.attempt.uncertain || s.attempt.inFlight > 0,
	}, s.settings.ttl)
	s.forgetOwnerLocked()
}

// mayTakeEffect reports whether the store may have executed, or may execute yet,
// a request that failed so.
func mayTakeEffect(err error) bool {
	return err != nil && (errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrUnreachable))
}

// transient reports whether asking again may help.
func transient(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrOutcomeUnknown) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// ourTimeout translates the end of a call's own time limit. A context's error is
// kept for the end of the caller's context; that a store is silent has its own.
func ourTimeout(caller context.Context, err error) error {
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if ended && caller.Err() == nil {
		return unreachable(ErrOutcomeUnknown)
	}
	return err
}

// unreachable makes sure that a caller who gives up on a silent store can tell
// so, whichever way the silence showed.
func unreachable(err error) error {
	if errors.Is(err, ErrUnreachable) {
		return err
	}
	return &joined{ErrUnreachable, err}
}
