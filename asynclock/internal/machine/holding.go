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

// A Holding is the time for which this client keeps a key, over one lease or over several that pass
// the key on.
type Holding struct {
	lease    *Lease           // the present one; nil: the key is retained
	deadline watchdog.Instant // the trust deadline; only ever moves forward
	renewAt  watchdog.Instant

	granted watchdog.Instant // known to follow the grant
	grant   store.Grant
	last    int64 // the last token given out
	unseen  bool  // nobody has seen that one

	uncertain bool  // a request of this owner may still take effect; see Attempt
	inFlight  int16 // requests of this owner without an answer yet; see Attempt

	unanswered int32 // renewals that may still take effect

	forced watchdog.Instant // when a message said that the key was taken by force; 0: none did, or it was not

	renewing bool // a renewal is under way
	again    bool // renew once more when it is answered
	failures int  // of renewals, in a row
	failure  error

	cohort cohort

	retained  watchdog.Instant // the end of the retention; 0: not retained
	notified  bool             // the store notifies us when others request the key
	requested bool             // others have requested the key
	long      bool             // it may have been renewed for longer than the TTL
	closed    bool             // no more readers may join: see S3
	together  bool             // its grant is being handed out to leases that end together
	block     block            // of permits

	downgrade *Downgrade // nobody has the key until the store has answered; nil: none
}

// A grant is what makes a client the holder.
type grant struct {
	store.Grant

	ttl      time.Duration    // that the store set at some moment after sent
	sent     watchdog.Instant // when the request was sent
	deadline watchdog.Instant // of trust
	waiters  int              // in the store, behind the holder
	message  bool             // it came by a message
}

// trust moves the trust deadline forward.
func (h *Holding) trust(deadline watchdog.Instant) { h.deadline = max(h.deadline, deadline) }

// isUncertain reports whether a request of this owner may still take effect.
func (h *Holding) isUncertain() bool { return h.uncertain || h.inFlight > 0 }

// hold makes this client the key's holder and gives the lease to its first waiter.
func (s *stake) hold(g grant, st *Step) {
	a := s.attempt
	if w := s.key.waiters.first; w == nil || *w.Terms != *s.terms || w.Weight > g.Weight {
		// The first waiter always has the terms of the attempt. Nobody gets what was granted on others.
		// Permits may have been granted to the one before it, which wanted fewer.
		s.abandon(nil, st)
		return
	}
	s.loseForgotten(st)
	a.held = true
	s.attempt = nil
	first := s.key.waiters.first
	h, l := s.key.host.NewHolding(first)
	s.holding = h
	*h = Holding{
		uncertain: a.uncertain,
		inFlight:  a.inFlight,

		deadline: g.deadline,
		renewAt:  schedule{ttl: g.ttl, lane: s.key.host.Lane()}.renewAt(g.sent),
		granted:  st.Now,
		grant:    g.Grant,
		last:     g.Token,
		cohort:   cohort{waited: g.waiters > 0, watch: a.watched || s.isTenure(), watching: a.watched, renewed: st.Now},
		// An unanswered request may be the one that was granted.
		notified:  !a.unnotified && a.inFlight == 0,
		requested: a.contended,
		closed:    a.contended,
		block:     block{held: g.Weight, kept: g.Weight, limit: a.limit, blind: g.message},
	}
	if s.key.futures != &noFutures {
		s.key.futures.lieUntil = 0
	}
	if s.isTenure() {
		s.beginTenure(l, g.sent, st)
		return
	}
	tries := fewTries
	if a.try {
		tries = 0 // its caller does not wait for another's unlock
	}
	w, lies := s.choose(tries, st)
	if w == nil { // nobody can receive any more
		st.releases.push(s.giveBack(0, st))
		return
	}
	if w != first {
		l = s.key.host.NewLease(w)
	}
	s.give(l, w, lies, st)
}

// give makes l, with the last token, the lease of w, or lets it lie with w.
func (s *stake) give(l *Lease, w *Waiter, lies bool, st *Step) {
	h := s.holding
	l.Token, l.Owner, l.Terms, l.uncertain = h.last, s.owner, w.Terms, h.isUncertain()
	h.lease, w.Lease = l, l
	if !lies {
		s.claim(w, st)
		return
	}
	w.Stage, l.lying, h.unseen = Lying, w, false
	h.renewAt = min(h.renewAt, s.watchAt(st.Now))
	s.key.futures.lain, s.key.futures.lookAt = st.Now, st.Now.Add(firstLook)
}

// claim makes the lease its caller's.
func (s *stake) claim(w *Waiter, st *Step) {
	h, l := s.holding, w.Lease
	hasLain := h.unseen || l.lying != nil && (l.first == nil || s.isTenure())
	if l.lying != nil && l.first != nil {
		l.first.lies--
	}
	h.unseen = false
	if f := s.key.futures; f != &noFutures && !s.isTenure() {
		f.lieUntil = st.Now // somebody of this client has had it
	}
	if w.Stage, l.lying = Claimed, nil; w.Future {
		s.key.futures.vain = 0
	}
	if l.first != nil {
		s.countBounds(w, l.first, st.Now)
	} else if l.claimed = st.Now; w.Terms.MaxHold > 0 {
		l.bound = l.claimed.Add(w.Terms.MaxHold)
	}
	if hasLain && !s.terms.Renew && !h.renewing && st.Now < h.deadline {
		h.renewing, h.again = true, false
		st.renewals.push(s.renewal(s.ttl(), st.Now)) // once, for the whole TTL that its caller is to have
	}
	st.decide(w)
}

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

// tick does the work that is due for a held key: it first ends an expired lease or retention, then
// renews.
func (s *stake) tick(st *Step) {
	h := s.holding
	switch {
	case h.lease == nil && st.Now >= h.end():
		s.releaseRetained(st)
	case h.lease == nil:
		s.renewIfDue(st)
	case st.Now >= h.end():
		s.lose(s.lapse(st.Now), st)
	case s.isLying():
		s.tickLying(st)
	default:
		s.renewIfDue(st)
	}
}

// lapse returns why the holding is over by now, or nil if it is not.
func (s *stake) lapse(now watchdog.Instant) error {
	h := s.holding
	switch {
	case now < h.end():
		return nil
	case h.lease != nil && h.lease.bound != 0 && h.lease.bound <= h.deadline:
		return ErrMaxHold
	}
	return s.expiryCause(now)
}

// expiryCause returns why trust ran out: either renewals failed, or no renewal was made in time. If the process was
// stopped while one was under way, nothing is known of the store.
func (s *stake) expiryCause(now watchdog.Instant) error {
	h := s.holding
	switch {
	case !s.renews() && h.forced != 0:
		return store.ErrExpired // what failed only asked
	case h.failure != nil:
		return failure.Join(ErrNotRenewed, h.failure)
	case h.renewing && now.Sub(h.deadline) <= noPause:
		return failure.Join(ErrNotRenewed, failure.Unreachable(store.ErrOutcomeUnknown))
	default:
		return store.ErrExpired
	}
}

// whyLost returns why a holding is over, of which the store has said that it is not there.
func (h *Holding) whyLost(said error) error {
	if h.forced != 0 {
		return store.ErrForced
	}
	return said
}

// lose ends the present lease with its cause. The key is left to expire in the store, because the
// holder may not have noticed the loss yet. The holder's Unlock frees the key sooner.
func (s *stake) lose(cause error, st *Step) {
	s.holding.downgrade.lost(cause)
	if s.holding.lease != nil {
		s.recall(st)
	}
	switch l := s.holding.lease; {
	case l != nil && (!s.isTenure() || l.joiner != nil):
		s.loseLease(l, cause, st)
	case errors.Is(cause, store.ErrStolen): // nobody has lost a lease: the next caller asks the store
		st.note(slog.LevelWarn, "another has a key that was retained", slog.String("key", s.key.Name))
	}
	s.key.requeueIdle()
	s.forgetOwner()
}

func (s *stake) loseLease(l *Lease, cause error, st *Step) {
	st.note(slog.LevelWarn, "lease lost",
		slog.String("key", s.key.Name), slog.Int64("token", l.Token), slog.Any("cause", cause))
	s.endAll(l, cause, st)
	if keep := l.holdBack(st.Now); keep > 0 && errors.Is(cause, ErrMaxHold) {
		s.key.withdraw(store.ReleaseRequest{Key: s.key.Name, Owner: s.owner, Token: l.Token, HoldBack: keep, Uncertain: l.uncertain}, l.Terms.TTL, st)
	}
}

// confirmed handles an answer that grants the key after a message has already granted it.
func (s *stake) confirmed(call *Acquire, reply *store.AcquireReply, st *Step) {
	h := s.holding
	ttl := call.Request().TTL
	switch {
	case st.Now >= h.deadline:
		s.tick(st) // too late: a lease that ended does not revive
	case h.downgrade != nil || call.Request().Share.Mode != s.terms.Mode:
		// It may be about what the owner had before or after its downgrade.
	case reply.Token < h.grant.Token || reply.Token > h.last: // a renewal may have raised it as far as last
		// The store granted the key anew, so the grant of the message had ended. Somebody else may
		// have had the key since.
		s.key.withdraw(store.ReleaseRequest{Key: s.key.Name, Owner: s.owner, Token: h.last, Uncertain: h.isUncertain()}, ttl, st)
		s.lose(store.ErrExpired, st)
	default:
		h.trust(trustUntil(call.Sent, ttlThatCounts(ttl, reply.TTL)))
	}
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

// Abandon ends every lease of the key with err, and leaves the key to expire. It returns how many leases
// there were, where those that joined by re-entry don't count.
func (k *Key) Abandon(err error, st *Step) (leases int) {
	defer k.reconcile(st)
	for s := &k.stakes; s != nil; {
		next := s.next
		if s.holding != nil { // and there is a lease, because TurnAway has left no retained key
			if s.holding.lease != nil {
				s.recall(st) // nothing lies any more, or it was received
			}
			leases += s.countLeases()
			s.holding.downgrade.lost(err)
			s.endAll(s.holding.lease, err, st)
			s.forgetOwner()
		}
		s = next
	}
	return leases
}

func (s *stake) countLeases() (n int) {
	if !s.isTenure() {
		return 1
	}
	for j := s.holding.lease.joiner; j != nil; j = j.earlier {
		n++
	}
	return n
}
