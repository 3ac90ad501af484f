// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Renew returns a renewal of the lease by ttl that its caller sends. It fails if the lease has ended.
func (k *Key) Renew(l *Lease, ttl time.Duration, st *Step) (*Renewal, error) {
	defer k.reconcile(st)
	if k.check(l, 0, st); l.Err != nil {
		return nil, l.Err
	}
	s := k.stakeOf(l.Owner)
	r := s.renewal(ttl, st.Now)
	r.manual = true
	r.Timeout = min(s.holding.deadline.Sub(st.Now), Patience(s.terms.TTL)) // there is only this attempt
	s.holding.long = s.holding.long || r.Request.TTL > s.ttl()
	return r, nil
}

// RenewalIsLate counts a renewal as failed for now, so that the next attempt can be made.
func (k *Key) RenewalIsLate(r *Renewal, st *Step) {
	defer k.reconcile(st)
	s := r.stake()
	if r.answered || s == nil || s.holding == nil {
		return
	}
	st.NotRenewed, st.Left = 1, s.holding.trustLeft(st.Now)
	if st.Now >= s.holding.deadline {
		s.tick(st)
		return
	}
	r.late = true
	s.holding.renewing = false
	s.renewalFailed(failure.Unreachable(store.ErrOutcomeUnknown), st)
}

// Renewed handles the answers to renewals that have come at the same time. Their step is one, because its end looks at all
// that this client has of the key.
func (k *Key) Renewed(all []*Renewal, replies []store.RenewReply, st *Step) {
	defer k.reconcile(st)
	st.Left = 1
	for i, r := range all {
		k.renewed(r, &replies[i], st)
	}
}

func (k *Key) renewed(r *Renewal, reply *store.RenewReply, st *Step) {
	r.answered = true
	if reply.Err == nil {
		st.Renewed++
	}
	s := r.stake()
	if s == nil || s.holding == nil {
		return // the lease ended meanwhile; a renewal that crosses a release changes nothing
	}
	h := s.holding
	if !failure.MayTakeEffect(reply.Err) {
		h.unanswered--
	}
	if reply.Err == nil || !r.late {
		st.Left = min(st.Left, h.trustLeft(st.Now))
	}
	if reply.Err != nil && !r.late {
		st.NotRenewed++
	}
	if st.Now >= h.deadline { // whatever the answer: a lease that ended does not revive
		s.tick(st)
		return
	}
	h.renewing = h.renewing && (r.manual || r.late)
	switch {
	case reply.Err == nil:
		s.extended(r, reply, st)
	case errors.Is(reply.Err, store.ErrLost) && (h.downgrade != nil || r.Request.Share.Mode != s.terms.Mode):
		// It may be about what the owner had before its downgrade: no proof of a loss.
	case errors.Is(reply.Err, store.ErrLost):
		s.lose(h.whyLost(reply.Err), st)
	case r.manual: // its caller gets the error
	case r.late: // it has been counted
	default:
		s.renewalFailed(reply.Err, st)
	}
}

// extended handles that a renewal has set the TTL.
func (s *stake) extended(r *Renewal, reply *store.RenewReply, st *Step) {
	h := s.holding
	if r.Sent >= h.forced {
		h.forced = 0 // nobody had taken the key, or this owner was granted it again
	}
	st.measured(r.Sent, ttlThatCounts(s.terms.TTL, reply.TTL))
	ttl := ttlThatCounts(r.Request.TTL, reply.TTL)
	if !r.asks {
		h.trust(trustUntil(r.Sent, ttl))
	}
	h.renewAt, h.failed = s.nextRenewal(r, ttl, st), nil
	if r.Sent >= h.cohort.renewed {
		waiters := reply.Waiters
		if s.isBlock() {
			waiters = s.others(waiters)
		}
		h.cohort.renewedAt(r.Sent, st.Now, r.Request.NotifyQueued, waiters)
	}
	h.closed = h.closed || h.cohort.waited // S3
	if h.cohort.waited && s.yield(st) {
		return // the notification was lost
	}
	s.learnLimit(reply.Limit)
}

// nextRenewal returns when to renew after r, which has set this TTL.
func (s *stake) nextRenewal(r *Renewal, ttl time.Duration, st *Step) watchdog.Instant {
	h := s.holding
	due := schedule{ttl: ttl, lane: int(s.key.Lane)}
	if h.lease == nil || s.isTenure() {
		due = watchfulSchedule(ttl, due.lane) // S6
	}
	renewAt := due.renewAt(r.Sent)
	if s.isLying() {
		renewAt = min(renewAt, s.watchAt(r.Sent))
	}
	if r.late { // a later renewal may have been answered before
		renewAt = max(renewAt, h.renewAt)
	}
	if h.forced != 0 { // it was sent before the message; a failed one that asks is repeated as soon
		renewAt = min(renewAt, h.renewAt)
	}
	// S1: one that was sent before a downgrade has not asked the store to notify us.
	unasked := s.isTenure() && !h.cohort.watching && !r.Request.NotifyQueued
	if unasked || h.again && !h.renewing {
		renewAt = st.Now
	}
	return renewAt
}
