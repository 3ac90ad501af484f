// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A renewCall is one renewal under way.
type renewCall struct {
	state   *keyState
	request store.RenewRequest
	sent    watchdog.Instant // before it is sent: when it was due
	timeout time.Duration
	until   watchdog.Instant // the trust deadline when it was made; a later answer is of no use
	manual  bool             // made by Lease.Renew: the watchdog's schedule ignores it

	answered bool
	late     bool // it has taken longer than its timeout, and counts as failed until it is answered
}

// renewLocked sends a renewal in the background.
func (s *keyState) renewLocked() {
	s.holding.renewing = true
	ttl := s.settings.ttl
	if l := s.holding.lease; l == nil || l.bound == 0 {
		ttl = s.ttl() // the lease, or the next one, may still be held for its full maximum
	}
	call := s.renewalLocked(ttl)
	s.scheduleLocked() // the deadline stands, whatever becomes of the call
	s.client.renewals.Add(laneFor(s.lane(), call.timeout), call)
}

// renewalLocked returns a renewal of the holding by ttl.
func (s *keyState) renewalLocked(ttl time.Duration) *renewCall {
	h := s.holding
	h.unanswered++
	now := watchdog.Now()
	if h.lease != nil && h.lease.bound != 0 {
		ttl = holdTTL(ttl, max(h.lease.bound.Sub(now), h.lease.holdBackLocked(now), time.Millisecond))
	}
	return &renewCall{
		state: s,
		request: store.RenewRequest{
			Key: s.key, Owner: s.owner, TTL: ttl, Token: h.last,
			NotifyQueued: h.cohort.watch,
			Description:  s.settings.holder,
		},
		sent:    now,
		timeout: schedule{ttl: ttl}.timeout(h.deadline.Sub(now), h.failures),
		until:   h.deadline,
	}
}

// Renewals go one call at a time in a lane, except for late ones. A caller that takes a lock
// meanwhile waits for the current call, and a Redis server needs some 6 µs for each lease in it.
// With a second call behind the first, the caller would wait twice as long.
const (
	lateRenewals = 512                    // the most that one call carries
	gathering    = 300 * time.Microsecond // the watchdog also delivers renewals one by one
)

// gentle returns how many of the remaining renewals one call carries while they are on time. It is
// 64, except for the last ones, which are divided so that no call has less than 50.
func gentle(left int) int {
	switch {
	case left >= 128:
		return 64
	case left >= 100:
		return left / 2
	default:
		return left
	}
}

// sendRenewals sends a batch of the watchdog's renewals. It uses small calls, unless they would
// make renewals late, for example if the store is far away.
func (c *Client) sendRenewals(lane int, calls []*renewCall) {
	for len(calls) > 0 {
		n := len(calls)
		if first := calls[0]; watchdog.Now().Sub(first.sent) < first.request.TTL/15 {
			n = gentle(n)
		}
		c.sendRenewalsAtOnce(lane, calls[:n])
		calls = calls[n:]
	}
}

// sendRenewalsAtOnce sends one call. If the answer takes longer than the timeout, the lane goes on
// to its next call, and this one stays under way up to the trust deadline. The store may carry it
// out, and then its answer counts, however late it comes.
func (c *Client) sendRenewalsAtOnce(lane int, calls []*renewCall) {
	requests := make([]store.RenewRequest, len(calls))
	timeout, until := calls[0].timeout, calls[0].until
	now := watchdog.Now()
	for i, call := range calls {
		call.sent = now
		requests[i] = call.request
		timeout, until = min(timeout, call.timeout), max(until, call.until)
	}
	ctx, cancel := context.WithTimeout(c.background, max(until.Sub(now), timeout))
	answered, goesOn := make(chan struct{}), make(chan bool, 1)
	// The goroutine ends with the call, at the latest at the deadline. Close waits for it.
	c.overdue.flying.Go(func() {
		defer cancel()
		for i, reply := range c.session.Renew(ctx, requests) {
			reply.Err = ourTimeout(c.background, reply.Err)
			calls[i].state.onRenew(calls[i], reply)
		}
		close(answered)
		if <-goesOn {
			c.overdue.leave(lane)
		}
	})
	prompt := time.NewTimer(timeout)
	defer prompt.Stop()
	select {
	case <-answered:
		goesOn <- false
		return
	case <-prompt.C:
	}
	late := c.overdue.enter(lane)
	goesOn <- late
	if !late {
		cancel() // enough of them are under way
		<-answered
		return
	}
	for _, call := range calls {
		call.state.renewalIsLate(call)
	}
}

// renewalIsLate counts a renewal as failed for now, so that the next attempt can be made.
func (s *keyState) renewalIsLate(call *renewCall) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	if call.answered || s.owner != call.request.Owner || s.holding == nil {
		return
	}
	call.late = true
	s.holding.renewing = false
	s.renewalFailedLocked(unreachable(ErrOutcomeUnknown), watchdog.Refresh())
}

// renewalFailedLocked schedules the next attempt. One failed renewal is not a loss.
func (s *keyState) renewalFailedLocked(err error, now watchdog.Instant) {
	h := s.holding
	h.failures++
	h.failure = err
	h.renewAt = now.Add(retryIn(h.failures, s.settings.ttl))
	s.client.log.Add(slog.LevelDebug, "renewal failed",
		slog.String("key", s.key), slog.Any("error", err))
	s.scheduleLocked()
}

// onRenew handles the answer to a renewal and returns its error.
func (s *keyState) onRenew(call *renewCall, reply store.RenewReply) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	call.answered = true
	if s.owner != call.request.Owner || s.holding == nil {
		return // the lease ended meanwhile; a renewal that crosses a release changes nothing
	}
	h := s.holding
	if !mayTakeEffect(reply.Err) {
		h.unanswered--
	}
	now := watchdog.Refresh()
	if now >= h.deadline { // whatever the answer: a lease that ended does not revive
		s.tickLocked(now)
		return
	}
	h.renewing = h.renewing && (call.manual || call.late)
	switch {
	case reply.Err == nil:
		s.client.trips.measured(call.sent, now, ttlThatCounts(s.settings.ttl, reply.TTL), s.client.log)
		ttl := ttlThatCounts(call.request.TTL, reply.TTL)
		h.trustLocked(trustUntil(call.sent, ttl))
		renewAt := schedule{ttl: ttl, lane: s.lane()}.renewAt(call.sent)
		if h.lease == nil {
			renewAt = s.renewRetainedAt(call.sent, ttl)
		}
		if call.late { // a later renewal may have been answered before
			renewAt = max(renewAt, h.renewAt)
		}
		h.renewAt, h.failures, h.failure = renewAt, 0, nil
		if call.sent >= h.cohort.renewed {
			h.cohort.renewedLocked(call.sent, now, call.request.NotifyQueued, reply.Waiters)
		}
		if h.lease == nil && h.cohort.waited {
			s.releaseRetainedLocked() // the notification was lost
			return
		}
		s.scheduleLocked()
	case errors.Is(reply.Err, ErrLost):
		s.loseLocked(reply.Err)
	case call.manual: // its caller gets the error
	case call.late: // it has been counted
	default:
		s.renewalFailedLocked(reply.Err, now)
	}
}
