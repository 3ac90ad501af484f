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
	Until   watchdog.Instant // the trust deadline when it was made; a later answer is of no use

	manual   bool // made for a caller: the schedule ignores it
	answered bool
	late     bool // it has taken longer than its timeout, and counts as failed until it is answered
}

// renew sends a renewal in the background.
func (k *Key) renew(now watchdog.Instant, fx *Effects) {
	k.holding.renewing = true
	ttl := k.terms.TTL
	if l := k.holding.lease; l == nil || l.bound == 0 {
		ttl = k.ttl() // the lease, or the next one, may still be held for its full maximum
	}
	fx.Renewal = k.renewal(ttl, now)
	k.schedule(fx) // the deadline stands, whatever becomes of the call
}

// renewal returns a renewal of the holding by ttl.
func (k *Key) renewal(ttl time.Duration, now watchdog.Instant) *Renewal {
	h := k.holding
	h.unanswered++
	if h.lease != nil && h.lease.bound != 0 {
		ttl = holdTTL(ttl, max(h.lease.bound.Sub(now), h.lease.holdBack(now), time.Millisecond))
	}
	return &Renewal{
		Key: k,
		Request: store.RenewRequest{
			Key: k.Name, Owner: k.owner, TTL: ttl, Token: h.last,
			NotifyQueued: h.cohort.watch,
			Description:  k.terms.Holder,
		},
		Sent:    now,
		Timeout: schedule{ttl: ttl}.timeout(h.deadline.Sub(now), h.failures),
		Until:   h.deadline,
	}
}

// renewIfDue renews the holding if a renewal is due.
func (k *Key) renewIfDue(now watchdog.Instant, fx *Effects) {
	if k.renewable() && now >= k.holding.renewAt {
		k.renew(now, fx)
	} else {
		k.schedule(fx)
	}
}

// Renew returns a renewal of the lease by ttl that its caller sends. It fails if the lease has ended.
func (k *Key) Renew(l *Lease, ttl time.Duration, now watchdog.Instant, fx *Effects) (*Renewal, error) {
	if k.Check(l, 0, now, fx); l.Err != nil {
		return nil, l.Err
	}
	r := k.renewal(ttl, now)
	r.manual = true
	r.Timeout = min(k.holding.deadline.Sub(now), Patience(k.terms.TTL)) // there is only this attempt
	k.holding.long = k.holding.long || r.Request.TTL > k.ttl()
	return r, nil
}

// RenewalIsLate counts a renewal as failed for now, so that the next attempt can be made.
func (k *Key) RenewalIsLate(r *Renewal, now watchdog.Instant, fx *Effects) {
	if r.answered || k.owner != r.Request.Owner || k.holding == nil {
		return
	}
	r.late = true
	k.holding.renewing = false
	k.renewalFailed(failure.Unreachable(store.ErrOutcomeUnknown), now, fx)
}

// renewalFailed schedules the next attempt. One failed renewal is not a loss.
func (k *Key) renewalFailed(err error, now watchdog.Instant, fx *Effects) {
	h := k.holding
	h.failures++
	h.failure = err
	h.renewAt = now.Add(RetryIn(h.failures, k.terms.TTL))
	fx.note(slog.LevelDebug, "renewal failed",
		slog.String("key", k.Name), slog.Any("error", err))
	k.schedule(fx)
}

// Renewed handles the answer to a renewal.
func (k *Key) Renewed(r *Renewal, reply store.RenewReply, now watchdog.Instant, fx *Effects) {
	r.answered = true
	if k.owner != r.Request.Owner || k.holding == nil {
		return // the lease ended meanwhile; a renewal that crosses a release changes nothing
	}
	h := k.holding
	if !failure.MayTakeEffect(reply.Err) {
		h.unanswered--
	}
	if now >= h.deadline { // whatever the answer: a lease that ended does not revive
		k.tick(now, fx)
		return
	}
	h.renewing = h.renewing && (r.manual || r.late)
	switch {
	case reply.Err == nil:
		k.extended(r, &reply, now, fx)
	case errors.Is(reply.Err, store.ErrLost):
		k.lose(reply.Err, now, fx)
	case r.manual: // its caller gets the error
	case r.late: // it has been counted
	default:
		k.renewalFailed(reply.Err, now, fx)
	}
}

// extended handles that a renewal has set the TTL.
func (k *Key) extended(r *Renewal, reply *store.RenewReply, now watchdog.Instant, fx *Effects) {
	h := k.holding
	fx.measured(r.Sent, ttlThatCounts(k.terms.TTL, reply.TTL))
	ttl := ttlThatCounts(r.Request.TTL, reply.TTL)
	h.trust(trustUntil(r.Sent, ttl))
	due := schedule{ttl: ttl, lane: k.host.Lane()}
	if h.lease == nil {
		due = retainedSchedule(ttl, due.lane)
	}
	renewAt := due.renewAt(r.Sent)
	if r.late { // a later renewal may have been answered before
		renewAt = max(renewAt, h.renewAt)
	}
	h.renewAt, h.failures, h.failure = renewAt, 0, nil
	if r.Sent >= h.cohort.renewed {
		h.cohort.renewedAt(r.Sent, now, r.Request.NotifyQueued, reply.Waiters)
	}
	if h.lease == nil && h.cohort.waited {
		k.ReleaseRetained(now, fx) // the notification was lost
		return
	}
	k.schedule(fx)
}
