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

	again      bool  // ask once more when the request under way is answered
	failure    error // of the last request; nil if it was answered
	try        bool  // it is a TryLock's, which nobody else may continue
	watch      bool  // ask to be told of waiters behind our holding; once asked, always
	watched    bool  // the store has answered a request that asked so
	unnotified bool  // we might not be told who wants what this attempt leads to, or were already
	held       bool  // it led to a holding
	uncertain  bool  // some request never had an answer, and may still take effect
	inFlight   int16 // requests without an answer yet
	failures   int16 // in a row

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

// requestAgainLocked sends the attempt's heartbeat, which is also how it learns of
// a grant whose message was lost. If a request is under way, its answer may have
// been decided before whatever made us ask, so another one follows it.
func (s *keyState) requestAgainLocked() {
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
