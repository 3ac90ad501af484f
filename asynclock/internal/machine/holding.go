// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Holding is the time for which this client keeps a key, over one lease or over several that pass
// the key on.
type Holding struct {
	lease    *Lease           // the present one; nil: the key is retained
	deadline watchdog.Instant // the trust deadline; only ever moves forward
	renewAt  watchdog.Instant

	granted watchdog.Instant // known to follow the grant
	grant   store.Grant
	last    int64 // the last token given out

	cohort   cohort
	retained watchdog.Instant // the end of the retention; 0: not retained
	forced   watchdog.Instant // when a message said that the key was taken by force; 0: none did, or it was not

	failed     *failedRenewals // nil: the last renewal that was answered has succeeded
	unanswered int32           // renewals that may still take effect
	inFlight   int16           // requests of this owner without an answer yet; see Attempt
	uncertain  bool            // a request of this owner may still take effect; see Attempt
	unseen     bool            // nobody has seen the last token

	renewing  bool  // a renewal is under way
	again     bool  // renew once more when it is answered
	way       Way   // how the present lease has come; of a tenure, how the next one comes
	notified  bool  // the store notifies us when others request the key
	requested bool  // others have requested the key
	long      bool  // it may have been renewed for longer than the TTL
	closed    bool  // no more readers may join: see S3
	together  bool  // its grant is being handed out to leases that end together
	block     block // of permits

	downgrade *Downgrade // nobody has the key until the store has answered; nil: none
}

// failedRenewals are renewals that have failed in a row. Most holdings see none.
type failedRenewals struct {
	n   int
	err error // of the last one
}

func (f *failedRenewals) count() int {
	if f == nil {
		return 0
	}
	return f.n
}

// trust moves the trust deadline forward.
func (h *Holding) trust(deadline watchdog.Instant) { h.deadline = max(h.deadline, deadline) }

// trustLeft returns how much is left of the trust that the last answer of the store has brought: 1 is all of it.
func (h *Holding) trustLeft(now watchdog.Instant) float32 {
	return max(float32(h.deadline.Sub(now))/float32(h.deadline.Sub(h.cohort.renewed)), 0)
}

// isUncertain reports whether a request of this owner may still take effect.
func (h *Holding) isUncertain() bool { return h.uncertain || h.inFlight > 0 }

// holdingDue returns when the holding has to be looked at.
func (s *stake) holdingDue() watchdog.Instant {
	h := s.holding
	at := h.end()
	if s.renewable() {
		at = min(at, h.renewAt)
	}
	if s.isLying() {
		at = min(at, s.nextLook())
	}
	if s.terms.MinHold > 0 && s.isBlock() && s.free() > 0 && h.lease.claimed != 0 { // it keeps them back
		at = min(at, h.lease.claimed.Add(s.terms.MinHold))
	}
	return at
}

// renewable reports whether the present lease is renewed.
func (s *stake) renewable() bool {
	h := s.holding
	l := h.lease
	if h.renewing || h.downgrade != nil || !s.renews() && h.forced == 0 {
		return false
	}
	switch {
	case l == nil:
		return true
	case !l.isWanted():
		return false
	case h.forced != 0:
		return true
	case l.bound == 0 || h.deadline < l.bound:
		return true
	}
	// When the maximum hold is reached, the store must still be requested to hold the key back.
	// Renewals leave the TTL as the time for that request.
	return l.Terms.MinHold > l.Terms.MaxHold
}

// renews reports whether the present lease is to be extended for as long as it is held.
func (s *stake) renews() bool { return s.terms.Renew || s.holding.lease.isGathered() || s.isLying() }

// end returns when the present lease, or the retention, ends if nothing happens.
func (h *Holding) end() watchdog.Instant {
	switch {
	case h.lease == nil:
		return min(h.deadline, h.retained)
	case h.lease.bound != 0:
		return min(h.deadline, h.lease.bound)
	}
	return h.deadline
}

// remaining returns for how long the present lease is still trusted.
func (s *stake) remaining(now watchdog.Instant) time.Duration {
	return max(s.holding.end().Sub(now), 0)
}

// Held returns the last token that was given out and what the owner says of itself. It reports false
// if no lease of this client lasts.
func (k *Key) Held() (token int64, holder string, ok bool) {
	for s := &k.stakes; s != nil; s = s.next {
		if s.holding != nil && s.holding.lease != nil {
			return s.holding.token(), s.terms.Holder, true
		}
	}
	return 0, "", false
}

// Has reports whether a holding with this token is this client's, or one beside it: the token is the largest of those who
// hold the key together. The store may not know the last token of a holding that passes from lease to lease.
func (k *Key) Has(mode store.Mode, token int64) bool {
	for s := &k.stakes; s != nil; s = s.next {
		h := s.holding
		if h == nil || min(h.grant.Token, h.token()) > token {
			continue
		}
		if token <= h.token() || s.isTenure() && s.terms.Mode == mode {
			return true
		}
	}
	return false
}

// token returns the token of the last lease. Readers have that of their group.
func (h *Holding) token() int64 {
	if h.grant.Fence != 0 {
		return h.grant.Fence
	}
	return h.last
}

// countBounds lets the bounds of a lease's hold count from now. A lease that has such has its tenure for
// itself.
func (s *stake) countBounds(w *Waiter, root *Lease, now watchdog.Instant) {
	if !s.isTenure() {
		return
	}
	w.Lease.claimed = now
	if root.claimed == 0 {
		root.claimed = now
	}
	if s.terms.MaxHold > 0 && root.bound == 0 {
		root.bound = now.Add(s.terms.MaxHold)
	}
}

// setRoot makes l the lease that stands for the tenure.
func (s *stake) setRoot(l *Lease) {
	h := s.holding
	l.begin(h.token(), s.owner, s.terms, h.isUncertain())
	l.tie()                               // to those that join it
	l.Err, l.unlocked = ErrUnlocked, true // nobody has it
	h.lease = l
	s.key.host.BeginsTenure(l)
}
