// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"log/slog"
	"time"

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
	of       *stake // whose holding it renews, as long as the owner is the same
}

func (r *Renewal) link() **Renewal { return &r.next }

// stake returns the stake of the renewal's owner, or nil if there is none any more.
func (r *Renewal) stake() *stake {
	if r.of.owner != r.Request.Owner {
		return nil
	}
	return r.of
}

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
		of:  s,
		Request: store.RenewRequest{
			Key: s.key.Name, Owner: s.owner, TTL: ttl, Token: h.last,
			NotifyQueued: h.cohort.watch,
			Share:        s.share(),
			Description:  s.terms.Holder,
		},
		Sent:    now,
		Timeout: schedule{ttl: ttl}.timeout(h.deadline.Sub(now), h.failed.count()),
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

// renewalFailed schedules the next attempt. One failed renewal is not a loss.
func (s *stake) renewalFailed(err error, st *Step) {
	h := s.holding
	h.failed = &failedRenewals{h.failed.count() + 1, err}
	h.renewAt = st.Now.Add(RetryIn(h.failed.n, s.terms.TTL))
	st.note(slog.LevelDebug, "renewal failed",
		slog.String("key", s.key.Name), slog.Any("error", err))
}
