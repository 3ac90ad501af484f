// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"log/slog"

	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

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
	case h.failed != nil:
		return failure.Join(ErrNotRenewed, h.failed.err)
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
