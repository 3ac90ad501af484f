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

// A tenure is the time this client keeps a key, over one lease or several that
// pass it on among themselves.
type tenure struct {
	lease    *Lease           // the present one; nil: the key is retained
	deadline watchdog.Instant // the trust deadline; only ever moves forward
	renewAt  watchdog.Instant

	granted watchdog.Instant // known to follow the grant
	grant   store.Grant
	last    int64 // the last token handed out

	uncertain bool  // a request of this owner may still take effect, see attempt
	inFlight  int16 // requests of this owner without an answer yet, likewise

	unanswered int32 // renewals that may still take effect

	renewing bool // a renewal is under way
	failures int  // of renewals, in a row
	failure  error

	cohort cohort

	retained watchdog.Instant // until when, if it is
	told     bool             // the store tells us who wants the key
	wanted   bool             // it did
	long     bool             // it may have been renewed for longer than the TTL
}

// trustLocked moves the trust deadline forward.
func (t *tenure) trustLocked(deadline watchdog.Instant) { t.deadline = max(t.deadline, deadline) }

// uncertainLocked reports whether a request of this owner may still take effect.
func (t *tenure) uncertainLocked() bool { return t.uncertain || t.inFlight > 0 }

// holdLocked makes this client the key's holder and its first waiter the
// lease's. The store set ttl at some moment after sent.
func (s *keyState) holdLocked(g store.Grant, ttl time.Duration, sent, deadline watchdog.Instant, waiters int) {
	a := s.attempt
	a.held = true
	s.attempt = nil
	both := new(tenureAndLease)
	s.tenure = &both.tenure
	*s.tenure = tenure{
		uncertain: a.uncertain,
		inFlight:  a.inFlight,

		deadline: deadline,
		renewAt:  schedule{ttl: ttl, lane: s.lane()}.renewAt(sent),
		granted:  watchdog.Now(),
		grant:    g,
		last:     g.Token,
		cohort:   cohort{waited: waiters > 0, watch: a.watched, watching: a.watched, renewed: watchdog.Now()},
		// A request without an answer may be the one that was granted.
		told: !a.deaf && a.inFlight == 0,
	}
	s.deliverLocked(&both.lease, g.Token)
}

// A tenureAndLease is a tenure with its first lease, as a rule its only one: what
// is made together is made at once.
type tenureAndLease struct {
	tenure tenure
	lease  Lease
}

// deliverLocked gives the key to the first waiter, as the lease l with the given
// token.
func (s *keyState) deliverLocked(l *Lease, token int64) {
	w := s.waiters.pop()
	s.tenure.last = token
	*l = newLease(s, w, token)
	s.tenure.lease = l
	w.lease = l
	if w.future {
		w.stage, l.waiter = granted, w
		// Until it is claimed the grant is not renewed, so a forgotten channel
		// never holds a key for longer than its TTL.
		s.client.watchdog.Set(&s.entry, s.tenure.deadline)
	} else {
		s.claimLocked(w)
	}
	w.sendLocked()
}

// claimLocked makes the lease its caller's.
func (s *keyState) claimLocked(w *waiter) {
	w.stage = claimed
	l := w.lease
	l.waiter = nil
	l.claimed = watchdog.Now()
	if w.settings.maxHold > 0 {
		l.bound = l.claimed.Add(w.settings.maxHold)
	}
	s.scheduleLocked()
}

// scheduleLocked sets when the key is to be looked at next.
func (s *keyState) scheduleLocked() {
	t := s.tenure
	at := t.endLocked()
	if s.renewableLocked() {
		at = min(at, t.renewAt)
	}
	s.client.watchdog.Set(&s.entry, at)
}

// renewableLocked reports whether the watchdog is to renew the present lease.
func (s *keyState) renewableLocked() bool {
	t := s.tenure
	if !s.settings.renew || t.renewing {
		return false
	}
	l := t.lease
	switch {
	case l == nil:
		return true
	case l.waiter != nil:
		return false
	case l.bound == 0 || t.deadline < l.bound:
		return true
	}
	// At the bound the store has yet to hear that the key is to be kept back, and the
	// TTL is the time for that.
	return l.settings.minHold > l.settings.maxHold
}

// endLocked is when the present lease, or the retention, ends if nothing happens.
func (t *tenure) endLocked() watchdog.Instant {
	switch {
	case t.lease == nil:
		return min(t.deadline, t.retained)
	case t.lease.bound != 0:
		return min(t.deadline, t.lease.bound)
	}
	return t.deadline
}

// tendLocked does what is due for a held key: first end what is over, then
// renew.
func (s *keyState) tendLocked(now watchdog.Instant) {
	t := s.tenure
	switch {
	case t.lease == nil && now >= t.endLocked():
		s.giveBackLocked()
	case t.lease == nil:
		s.keepUpLocked(now)
	case t.lease.waiter != nil && now >= t.deadline:
		s.takeBackLocked(ErrNotClaimed)
	case t.lease.bound != 0 && now >= t.lease.bound && t.lease.bound <= t.deadline:
		s.loseLocked(ErrMaxHold)
	case now >= t.deadline:
		s.loseLocked(s.expiryLocked())
	default:
		s.keepUpLocked(now)
	}
}

// keepUpLocked renews what is not over, if that is due.
func (s *keyState) keepUpLocked(now watchdog.Instant) {
	if s.renewableLocked() && now >= s.tenure.renewAt {
		s.renewLocked()
	} else {
		s.scheduleLocked()
	}
}

// expiryLocked says why trust ran out: because renewals failed, or because none
// was made in time.
func (s *keyState) expiryLocked() error {
	t := s.tenure
	switch {
	case t.failure != nil:
		return &joined{ErrNotRenewed, t.failure}
	case t.renewing:
		return &joined{ErrNotRenewed, unreachable(ErrOutcomeUnknown)}
	default:
		return ErrExpired
	}
}

// loseLocked ends the present lease with its cause. What the store still has of
// it is left to expire, because the holder may not have noticed yet; its Unlock
// will free the key sooner.
func (s *keyState) loseLocked(cause error) {
	l := s.tenure.lease
	if l == nil { // nobody's loss: who takes the key next asks the store
		if errors.Is(cause, ErrStolen) {
			s.client.notes.Add(slog.LevelWarn, "another has a key that was retained", slog.String("key", s.key))
		}
		s.forgetOwnerLocked()
		s.nextLocked()
		return
	}
	s.client.notes.Add(slog.LevelWarn, "lease lost",
		slog.String("key", s.key), slog.Int64("token", l.token), slog.Any("cause", cause))
	if l.waiter != nil {
		l.waiter.failLocked(cause)
	}
	l.endAllLocked(cause)
	if keep := l.keepLocked(watchdog.Now()); keep > 0 && errors.Is(cause, ErrMaxHold) {
		s.client.withdraw(store.ReleaseRequest{Key: s.key, Owner: s.owner, Token: l.token, HoldBack: keep, Uncertain: l.uncertain}, l.settings.ttl)
	}
	s.forgetOwnerLocked()
	s.nextLocked()
}

// confirmedLocked takes in a reply that grants what a message has granted
// before.
func (s *keyState) confirmedLocked(call *acquireCall, reply *store.AcquireReply) {
	t := s.tenure
	switch now := watchdog.Refresh(); {
	case now >= t.deadline:
		s.tendLocked(now) // too late: a lease that ended does not revive
	case reply.Token < t.grant.Token || reply.Token > t.last: // a renewal may have raised it as far as last
		// The key was granted anew, so the grant of the message had ended, and
		// somebody else may have had the key since.
		s.client.withdraw(store.ReleaseRequest{Key: s.key, Owner: s.owner, Token: t.last, Uncertain: t.uncertainLocked()}, call.request.TTL)
		s.loseLocked(ErrExpired)
	default:
		t.trustLocked(trustUntil(call.sent, ttlThatCounts(call.request.TTL, reply.TTL)))
	}
}

// A renewCall is one renewal on its way.
type renewCall struct {
	state   *keyState
	request store.RenewRequest
	sent    watchdog.Instant // until then, when it was due
	timeout time.Duration
	manual  bool // made by Lease.Renew: the watchdog's schedule is not its business
}

// renewLocked sends a renewal in the background.
func (s *keyState) renewLocked() {
	s.tenure.renewing = true
	ttl := s.settings.ttl
	if l := s.tenure.lease; l == nil || l.waiter != nil {
		ttl = s.ttl() // the next lease has its maximum hold before it
	}
	call := s.renewalLocked(ttl)
	s.scheduleLocked() // the deadline stands, whatever becomes of the call
	s.client.renewals.Add(laneFor(s.lane(), call.timeout), call)
}

// renewalLocked makes a renewal of the tenure by ttl.
func (s *keyState) renewalLocked(ttl time.Duration) *renewCall {
	t := s.tenure
	t.unanswered++
	now := watchdog.Now()
	if t.lease != nil && t.lease.bound != 0 {
		ttl = holdTTL(ttl, max(t.lease.bound.Sub(now), t.lease.keepLocked(now), time.Millisecond))
	}
	return &renewCall{
		state: s,
		request: store.RenewRequest{
			Key: s.key, Owner: s.owner, TTL: ttl, Token: t.last,
			NotifyQueued: t.cohort.watch,
			Description:  s.settings.holder,
		},
		sent:    now,
		timeout: schedule{ttl: ttl}.timeout(t.deadline.Sub(now), t.failures),
	}
}

// Renewals go one call at a time in a lane. Whoever takes a lock meanwhile waits for
// that call, for which a Redis server takes some 6 µs a lease; with a second one
// behind it, it would wait for twice as long.
const (
	lateRenewals = 512                    // a call carries at most
	gathering    = 300 * time.Microsecond // the watchdog, too, has them one by one
)

// gentle is how many of so many renewals one call carries while they are on time: 64,
// and what is left in the end so that no call has less than 50.
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

// sendRenewals carries a batch of the watchdog's renewals: in small calls, unless
// that would make them late, as where the way to the store is long.
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

// onRenew takes in the answer to a renewal and returns its error.
func (s *keyState) onRenew(call *renewCall, reply store.RenewReply) {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	if s.owner != call.request.Owner || s.tenure == nil {
		return // it ended meanwhile; a renewal that crosses a release changes nothing
	}
	t := s.tenure
	if !mayTakeEffect(reply.Err) {
		t.unanswered--
	}
	now := watchdog.Refresh()
	if now >= t.deadline { // whatever the answer: a lease that ended does not revive
		s.tendLocked(now)
		return
	}
	t.renewing = t.renewing && call.manual
	switch {
	case reply.Err == nil:
		ttl := ttlThatCounts(call.request.TTL, reply.TTL)
		t.trustLocked(trustUntil(call.sent, ttl))
		t.renewAt = schedule{ttl: ttl, lane: s.lane()}.renewAt(call.sent)
		if t.lease == nil {
			t.renewAt = s.renewRetainedAt(call.sent, ttl)
		}
		t.failures, t.failure = 0, nil
		t.cohort.renewedLocked(call.sent, now, call.request.NotifyQueued, reply.Waiters)
		if t.lease == nil && t.cohort.waited {
			s.giveBackLocked() // that message was lost
			return
		}
		s.scheduleLocked()
	case errors.Is(reply.Err, ErrLost):
		s.loseLocked(reply.Err)
	case call.manual: // its caller is told
	default: // one failed renewal is not a loss
		t.failures++
		t.failure = reply.Err
		t.renewAt = now.Add(retryIn(t.failures, s.settings.ttl))
		s.client.notes.Add(slog.LevelDebug, "renewal failed",
			slog.String("key", s.key), slog.Any("error", reply.Err))
		s.scheduleLocked()
	}
}

// remainingLocked is how long the present lease is still trusted.
func (s *keyState) remainingLocked() time.Duration {
	return max(s.tenure.endLocked().Sub(watchdog.Now()), 0)
}
