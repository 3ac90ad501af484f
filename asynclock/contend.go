// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// An attempt is a client's one waiter for a key in the store. It stands for all local waiters.
//
// Its rules are numbered in docs/design.md, W1 to W11. They protect against a grant that is older
// than it looks. The store may have granted the key to this owner long before the client reads the
// message, and may have granted it to another owner since.
type attempt struct {
	base   watchdog.Instant // known to precede any grant that is still unread
	mark   int64            // grants with a token up to this are older than base
	ticket int64            // our place in the store's queue
	grace  watchdog.Instant // until then the store grants nothing to anyone, and knows of no holder; 0: no grace

	trouble *trouble   // the failures up to now; nil: the last request was answered in time
	verdict *verdict   // what TryLocks wait for until the store has answered; nil: none waits
	blocker *HeldError // who had the key when the store last answered that we wait; nil: nobody, or no answer yet

	again      bool  // repeat the request when the one under way is answered
	try        bool  // the attempt belongs to a TryLock and nobody else may continue it
	watch      bool  // ask the store to notify us of waiters behind our holding; once set, always
	watched    bool  // the store has answered a request that asked for that
	unnotified bool  // the notification of others who request the key may not come, or has come already
	held       bool  // the attempt led to a holding
	uncertain  bool  // a request was never answered and may still take effect
	asked      bool  // a request was sent, or is about to be
	admitted   bool  // the waiters were in the store's queue before, so its limit does not apply
	inFlight   int16 // requests without an answer yet
}

// An acquireCall is one request of an attempt under way.
type acquireCall struct {
	state   *keyState
	attempt *attempt
	request *store.AcquireRequest   // the first of alone; a store was given it, so it does not change any more
	alone   [1]store.AcquireRequest // the batch, if it goes alone
	timeout time.Duration
	sent    watchdog.Instant // set when it is sent

	first bool // the first of the two requests that a TryLock may make
	again bool // the TryLock has to make the second one
	ended bool // there is no answer because the caller's context ended
}

// An attemptAndCall is an attempt with its first request, in one allocation. A caller that waits on
// its own goroutine usually ends both at the same time. The attempt of a future may last long after
// its request, so it has none of this.
type attemptAndCall struct {
	attempt attempt
	call    acquireCall
}

// contendLocked starts an attempt for the first waiter and returns its first request.
func (s *keyState) contendLocked() *acquireCall {
	if s.waiters.first.future {
		s.beginLocked(watchdog.Now())
		return s.requestLocked()
	}
	made := new(attemptAndCall)
	s.beginAsLocked(&made.attempt, watchdog.Now())
	s.requestAsLocked(&made.call)
	return &made.call
}

// beginLocked starts an attempt for the first waiter.
func (s *keyState) beginLocked(now watchdog.Instant) { s.beginAsLocked(new(attempt), now) }

// beginAsLocked makes a the attempt of the first waiter. W1: the client registers the owner and takes
// base before it sends anything.
func (s *keyState) beginAsLocked(a *attempt, now watchdog.Instant) {
	w := s.waiters.first
	s.owner = newOwner(s.shard.number)
	s.settings = w.settings
	s.shard.owners[s.owner] = s
	*a = attempt{base: now, try: w.try}
	s.attempt = a
}

// ttl returns the TTL to request from the store. The time to wait for the store follows from the
// setting instead, because a short lease is no reason for short timeouts.
func (s *keyState) ttl() time.Duration {
	if s.settings.maxHold == 0 {
		return s.settings.ttl
	}
	return holdTTL(s.settings.ttl, max(s.settings.maxHold, s.settings.minHold))
}

// requestLocked returns the attempt's next request.
func (s *keyState) requestLocked() *acquireCall {
	call := new(acquireCall)
	s.requestAsLocked(call)
	return call
}

// requestAsLocked makes call the attempt's next request.
func (s *keyState) requestAsLocked(call *acquireCall) {
	a := s.attempt
	a.inFlight++
	a.asked = true
	a.watch = a.watch || s.waiters.n > 1
	ttl, limit := s.settings.ttl, s.settings.queueLimit
	if a.admitted {
		limit = 0
	}
	*call = acquireCall{
		state:   s,
		attempt: a,
		alone: [1]store.AcquireRequest{{
			Key:            s.key,
			Owner:          s.owner,
			TTL:            s.ttl(),
			GrantTTL:       min(grantTTL(ttl), s.ttl()),
			WaiterTTL:      grantTTL(ttl),
			Wait:           !a.try,
			QueueLimit:     limit,
			Ticket:         a.ticket,
			NotifyQueued:   a.watch,
			NotifyRequests: s.settings.retention > 0,
			Description:    s.settings.holder,
		}},
		timeout: backoff.Doubled(callTimeout(ttl), a.trouble.count(), patience(ttl)),
	}
	call.request = &call.alone[0]
}

// requestAgainLocked sends the attempt's heartbeat, which also finds a grant whose message was
// lost. If a request is under way, the store may have decided its answer before the event that
// caused this call. Another request then follows it.
func (s *keyState) requestAgainLocked() {
	if s.attempt.inFlight > 0 {
		s.attempt.again = true
		return
	}
	s.attempt.again = false
	s.client.send(s.requestLocked())
}

// send queues a request in the background.
func (c *Client) send(call *acquireCall) {
	c.acquires.Add(laneFor(call.state.lane(), call.timeout), call)
}

// sendAll queues requests in the background, those of a lane in one call.
func (c *Client) sendAll(calls []*acquireCall) {
	lanes := make(map[int][]*acquireCall, 1)
	for _, call := range calls {
		lane := laneFor(call.state.lane(), call.timeout)
		lanes[lane] = append(lanes[lane], call)
	}
	for lane, together := range lanes {
		c.acquires.AddAll(lane, together)
	}
}

// sendAcquires sends a batch of requests that no caller waits for.
func (c *Client) sendAcquires(_ int, calls []*acquireCall) {
	requests := make([]store.AcquireRequest, len(calls))
	timeout := calls[0].timeout
	now := watchdog.Now()
	for i, call := range calls {
		call.sent = now
		requests[i] = *call.request
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

// acquire sends an attempt's first request on its caller's own goroutine. This saves the
// uncontended lock two changes of goroutine.
func (c *Client) acquire(caller context.Context, call *acquireCall) {
	ctx := c.limits.bound(caller, call.timeout, 0)
	defer ctx.leave()
	call.sent = watchdog.Now()
	reply := store.AcquireReply{Err: ErrOutcomeUnknown}
	// This also runs if the store panics. The caller may survive that, and so do other waiters.
	defer func() { c.onAcquire(call, &reply) }()
	reply = c.session.Acquire(ctx, call.alone[:])[0]
	call.ended = reply.Err != nil && caller.Err() != nil
	reply.Err = ourTimeout(c.background, reply.Err)
}

// mayTakeEffect reports whether a request that failed with err may have been executed by the store,
// or may still be executed.
func mayTakeEffect(err error) bool {
	return err != nil && (errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrUnreachable))
}

// transient reports whether repeating the request may help.
func transient(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrOutcomeUnknown) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// ourTimeout translates the end of a call's own time limit into ErrUnreachable. A context's error
// is reserved for the end of the caller's context.
func ourTimeout(caller context.Context, err error) error {
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if ended && caller.Err() == nil {
		return unreachable(noAnswerError{})
	}
	return err
}

// unreachable makes sure that the error of a silent store matches ErrUnreachable, however the
// silence showed.
func unreachable(err error) error {
	if errors.Is(err, ErrUnreachable) {
		return err
	}
	return &joined{ErrUnreachable, err}
}
