// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"errors"
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A holding is the time for which this client keeps a key, over one lease or over several that pass
// the key on.
type holding struct {
	lease    *Lease           // the present one; nil: the key is retained
	deadline watchdog.Instant // the trust deadline; only ever moves forward
	renewAt  watchdog.Instant

	granted watchdog.Instant // known to follow the grant
	grant   store.Grant
	last    int64 // the last token given out

	uncertain bool  // a request of this owner may still take effect; see attempt
	inFlight  int16 // requests of this owner without an answer yet; see attempt

	unanswered int32 // renewals that may still take effect

	renewing bool // a renewal is under way
	failures int  // of renewals, in a row
	failure  error

	cohort cohort

	retained  watchdog.Instant // the end of the retention; 0: not retained
	notified  bool             // the store notifies us when others request the key
	requested bool             // others have requested the key
	long      bool             // it may have been renewed for longer than the TTL
}

// trustLocked moves the trust deadline forward.
func (h *holding) trustLocked(deadline watchdog.Instant) { h.deadline = max(h.deadline, deadline) }

// uncertainLocked reports whether a request of this owner may still take effect.
func (h *holding) uncertainLocked() bool { return h.uncertain || h.inFlight > 0 }

// holdLocked makes this client the key's holder and gives the lease to its first waiter. The store
// set ttl at some moment after sent.
func (s *keyState) holdLocked(g store.Grant, ttl time.Duration, sent, deadline watchdog.Instant, waiters int) {
	a := s.attempt
	a.held = true
	a.settleLocked(nil)
	s.attempt = nil
	made := new(holdingAndLease)
	s.holding = &made.holding
	*s.holding = holding{
		uncertain: a.uncertain,
		inFlight:  a.inFlight,

		deadline: deadline,
		renewAt:  schedule{ttl: ttl, lane: s.lane()}.renewAt(sent),
		granted:  watchdog.Now(),
		grant:    g,
		last:     g.Token,
		cohort:   cohort{waited: waiters > 0, watch: a.watched, watching: a.watched, renewed: watchdog.Now()},
		// An unanswered request may be the one that was granted.
		notified: !a.unnotified && a.inFlight == 0,
	}
	s.deliverLocked(&made.lease, g.Token)
}

// A holdingAndLease is a holding with its first lease, usually its only one. Both are made
// together, in one allocation.
type holdingAndLease struct {
	holding holding
	lease   Lease
}

// deliverLocked gives the key to the first waiter, as the lease l with the given
// token.
func (s *keyState) deliverLocked(l *Lease, token int64) {
	w := s.waiters.pop()
	s.holding.last = token
	l.beginLocked(s, w, token)
	s.holding.lease = l
	w.lease = l
	if w.future {
		w.stage, l.waiter = granted, w
		// An unclaimed grant is not renewed, so a forgotten channel never holds a key for longer
		// than its TTL.
		s.client.watchdog.Set(&s.entry, s.holding.deadline)
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

// scheduleLocked sets when the watchdog looks at the key next.
func (s *keyState) scheduleLocked() {
	h := s.holding
	at := h.endLocked()
	if s.renewableLocked() {
		at = min(at, h.renewAt)
	}
	s.client.watchdog.Set(&s.entry, at)
}

// renewableLocked reports whether the watchdog renews the present lease.
func (s *keyState) renewableLocked() bool {
	h := s.holding
	l := h.lease
	if h.renewing || !s.settings.renew && !l.gatheredLocked() {
		return false
	}
	switch {
	case l == nil:
		return true
	case l.waiter != nil, !l.wantedLocked():
		return false
	case l.bound == 0 || h.deadline < l.bound:
		return true
	}
	// When the maximum hold is reached, the store must still be requested to hold the key back.
	// Renewals leave the TTL as the time for that request.
	return l.settings.minHold > l.settings.maxHold
}

// endLocked returns when the present lease, or the retention, ends if nothing happens.
func (h *holding) endLocked() watchdog.Instant {
	switch {
	case h.lease == nil:
		return min(h.deadline, h.retained)
	case h.lease.bound != 0:
		return min(h.deadline, h.lease.bound)
	}
	return h.deadline
}

// tickLocked does the work that is due for a held key: it first ends an expired lease or retention,
// then renews.
func (s *keyState) tickLocked(now watchdog.Instant) {
	h := s.holding
	switch {
	case h.lease == nil && now >= h.endLocked():
		s.releaseRetainedLocked()
	case h.lease == nil:
		s.renewIfDueLocked(now)
	case h.lease.waiter != nil && now >= h.deadline:
		s.revokeUnclaimedLocked(ErrNotClaimed)
	case h.lease.bound != 0 && now >= h.lease.bound && h.lease.bound <= h.deadline:
		s.loseLocked(ErrMaxHold)
	case now >= h.deadline:
		s.loseLocked(s.expiryCauseLocked())
	default:
		s.renewIfDueLocked(now)
	}
}

// renewIfDueLocked renews the holding if a renewal is due.
func (s *keyState) renewIfDueLocked(now watchdog.Instant) {
	if s.renewableLocked() && now >= s.holding.renewAt {
		s.renewLocked()
	} else {
		s.scheduleLocked()
	}
}

// expiryCauseLocked returns why trust ran out: either renewals failed, or no renewal was made in
// time.
func (s *keyState) expiryCauseLocked() error {
	h := s.holding
	switch {
	case h.failure != nil:
		return &joined{ErrNotRenewed, h.failure}
	case h.renewing:
		return &joined{ErrNotRenewed, unreachable(ErrOutcomeUnknown)}
	default:
		return ErrExpired
	}
}

// loseLocked ends the present lease with its cause. The key is left to expire in the store, because
// the holder may not have noticed the loss yet. The holder's Unlock frees the key sooner.
func (s *keyState) loseLocked(cause error) {
	l := s.holding.lease
	if l == nil { // nobody has lost a lease: the next caller asks the store
		if errors.Is(cause, ErrStolen) {
			s.client.log.Add(slog.LevelWarn, "another has a key that was retained", slog.String("key", s.key))
		}
		s.forgetOwnerLocked()
		s.contendOrDropLocked()
		return
	}
	s.client.log.Add(slog.LevelWarn, "lease lost",
		slog.String("key", s.key), slog.Int64("token", l.token), slog.Any("cause", cause))
	if l.waiter != nil {
		l.waiter.failLocked(cause)
	}
	l.endAllLocked(cause)
	s.queueJoinersLocked()
	if keep := l.holdBackLocked(watchdog.Now()); keep > 0 && errors.Is(cause, ErrMaxHold) {
		s.client.withdraw(store.ReleaseRequest{Key: s.key, Owner: s.owner, Token: l.token, HoldBack: keep, Uncertain: l.uncertain}, l.settings.ttl)
	}
	s.forgetOwnerLocked()
	s.contendOrDropLocked()
}

// confirmedLocked handles a reply that grants the key after a message has already granted it.
func (s *keyState) confirmedLocked(call *acquireCall, reply *store.AcquireReply) {
	h := s.holding
	switch now := watchdog.Refresh(); {
	case now >= h.deadline:
		s.tickLocked(now) // too late: a lease that ended does not revive
	case reply.Token < h.grant.Token || reply.Token > h.last: // a renewal may have raised it as far as last
		// The store granted the key anew, so the grant of the message had ended. Somebody else may
		// have had the key since.
		s.client.withdraw(store.ReleaseRequest{Key: s.key, Owner: s.owner, Token: h.last, Uncertain: h.uncertainLocked()}, call.request.TTL)
		s.loseLocked(ErrExpired)
	default:
		h.trustLocked(trustUntil(call.sent, ttlThatCounts(call.request.TTL, reply.TTL)))
	}
}

// remainingLocked returns for how long the present lease is still trusted.
func (s *keyState) remainingLocked() time.Duration {
	return max(s.holding.endLocked().Sub(watchdog.Now()), 0)
}
