// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Renewal is one renewal under way.
type Renewal struct {
	Key     *Key
	Request store.RenewRequest
	Sent    watchdog.Instant // before it is sent: when it was due
	Timeout time.Duration

	manual   bool // made for a caller: the schedule ignores it
	asks     bool // made only to ask whether the key was taken: the lease lasts no longer for its answer
	answered bool
	late     bool // it has taken longer than its timeout, and counts as failed until it is answered
	next     *Renewal
}

func (r *Renewal) link() **Renewal { return &r.next }

// renew sends a renewal in the background.
func (s *stake) renew(st *Step) {
	s.holding.renewing, s.holding.again = true, false
	ttl := s.terms.TTL
	asks := s.holding.forced != 0 && !s.renews()
	switch l := s.holding.lease; {
	case asks:
		ttl = holdTTL(ttl, s.holding.deadline.Sub(st.Now))
	case l == nil || l.bound == 0:
		ttl = s.ttl() // the lease, or the next one, may still be held for its full maximum
	}
	r := s.renewal(ttl, st.Now)
	r.asks = asks
	st.renewals.push(r)
}

// renewal returns a renewal of the holding by ttl.
func (s *stake) renewal(ttl time.Duration, now watchdog.Instant) *Renewal {
	h := s.holding
	h.unanswered++
	if h.lease != nil && h.lease.bound != 0 {
		ttl = holdTTL(ttl, max(h.lease.bound.Sub(now), h.lease.holdBack(now), time.Millisecond))
	}
	return &Renewal{
		Key: s.key,
		Request: store.RenewRequest{
			Key: s.key.Name, Owner: s.owner, TTL: ttl, Token: h.last,
			NotifyQueued: h.cohort.watch,
			Share:        s.share(),
			Description:  s.terms.Holder,
		},
		Sent:    now,
		Timeout: schedule{ttl: ttl}.timeout(h.deadline.Sub(now), h.failures),
	}
}

// renewNow renews the holding now, if it is renewed at all. If a renewal is under way, the store may have
// decided its answer before the event that caused this call. Another one then follows it.
func (s *stake) renewNow(st *Step) {
	switch {
	case s.holding.renewing:
		s.holding.again = true
	case s.renewable():
		s.renew(st)
	}
}

// renewIfDue renews the holding if a renewal is due.
func (s *stake) renewIfDue(st *Step) {
	if s.renewable() && st.Now >= s.holding.renewAt {
		s.renew(st)
	}
}

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
	s := k.stakeOf(r.Request.Owner)
	if r.answered || s == nil || s.holding == nil {
		return
	}
	if st.Now >= s.holding.deadline {
		s.tick(st)
		return
	}
	r.late = true
	s.holding.renewing = false
	s.renewalFailed(failure.Unreachable(store.ErrOutcomeUnknown), st)
}

// renewalFailed schedules the next attempt. One failed renewal is not a loss.
func (s *stake) renewalFailed(err error, st *Step) {
	h := s.holding
	h.failures++
	h.failure = err
	h.renewAt = st.Now.Add(RetryIn(h.failures, s.terms.TTL))
	st.note(slog.LevelDebug, "renewal failed",
		slog.String("key", s.key.Name), slog.Any("error", err))
}

// Renewed handles the answer to a renewal.
func (k *Key) Renewed(r *Renewal, reply store.RenewReply, st *Step) {
	defer k.reconcile(st)
	r.answered = true
	s := k.stakeOf(r.Request.Owner)
	if s == nil || s.holding == nil {
		return // the lease ended meanwhile; a renewal that crosses a release changes nothing
	}
	h := s.holding
	if !failure.MayTakeEffect(reply.Err) {
		h.unanswered--
	}
	if st.Now >= h.deadline { // whatever the answer: a lease that ended does not revive
		s.tick(st)
		return
	}
	h.renewing = h.renewing && (r.manual || r.late)
	switch {
	case reply.Err == nil:
		s.extended(r, &reply, st)
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
	due := schedule{ttl: ttl, lane: s.key.host.Lane()}
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
	if s.isTenure() && !h.cohort.watching && !r.Request.NotifyQueued {
		renewAt = st.Now // it was sent before a downgrade; S1: the store has to be asked
	}
	if h.forced != 0 { // it was sent before the message; a failed one that asks is repeated as soon
		renewAt = min(renewAt, h.renewAt)
	}
	if h.again && !h.renewing {
		renewAt = st.Now
	}
	h.renewAt, h.failures, h.failure = renewAt, 0, nil
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
	s.learnLimit(reply.Limit, st)
}
