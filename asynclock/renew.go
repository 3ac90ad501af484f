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
	manual  bool // made by Lease.Renew: the watchdog's schedule ignores it
}

// renewLocked sends a renewal in the background.
func (s *keyState) renewLocked() {
	s.holding.renewing = true
	ttl := s.settings.ttl
	if l := s.holding.lease; l == nil || l.waiter != nil {
		ttl = s.ttl() // the next lease may be held for its full maximum
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
	}
}

// Renewals go one call at a time in a lane. A caller that takes a lock meanwhile waits for the
// current call, and a Redis server needs some 6 µs for each lease in it. With a second call behind
// the first, the caller would wait twice as long.
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
func (c *Client) sendRenewals(_ int, calls []*renewCall) {
	for len(calls) > 0 {
		n := len(calls)
		if first := calls[0]; watchdog.Now().Sub(first.sent) < first.request.TTL/15 {
			n = gentle(n)
		}
		c.sendRenewalsAtOnce(calls[:n])
		calls = calls[n:]
	}
}

func (c *Client) sendRenewalsAtOnce(calls []*renewCall) {
	requests := make([]store.RenewRequest, len(calls))
	timeout := calls[0].timeout
	now := watchdog.Now()
	for i, call := range calls {
		call.sent = now
		requests[i] = call.request
		timeout = min(timeout, call.timeout)
	}
	ctx, cancel := context.WithTimeout(c.background, timeout)
	defer cancel()
	for i, reply := range c.session.Renew(ctx, requests) {
		reply.Err = ourTimeout(c.background, reply.Err)
		calls[i].state.onRenew(calls[i], reply)
	}
}

// onRenew handles the answer to a renewal and returns its error.
func (s *keyState) onRenew(call *renewCall, reply store.RenewReply) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
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
	h.renewing = h.renewing && call.manual
	switch {
	case reply.Err == nil:
		ttl := ttlThatCounts(call.request.TTL, reply.TTL)
		h.trustLocked(trustUntil(call.sent, ttl))
		h.renewAt = schedule{ttl: ttl, lane: s.lane()}.renewAt(call.sent)
		if h.lease == nil {
			h.renewAt = s.renewRetainedAt(call.sent, ttl)
		}
		h.failures, h.failure = 0, nil
		h.cohort.renewedLocked(call.sent, now, call.request.NotifyQueued, reply.Waiters)
		if h.lease == nil && h.cohort.waited {
			s.releaseRetainedLocked() // the notification was lost
			return
		}
		s.scheduleLocked()
	case errors.Is(reply.Err, ErrLost):
		s.loseLocked(reply.Err)
	case call.manual: // its caller gets the error
	default: // one failed renewal is not a loss
		h.failures++
		h.failure = reply.Err
		h.renewAt = now.Add(retryIn(h.failures, s.settings.ttl))
		s.client.log.Add(slog.LevelDebug, "renewal failed",
			slog.String("key", s.key), slog.Any("error", reply.Err))
		s.scheduleLocked()
	}
}
