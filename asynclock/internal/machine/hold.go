// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A grant is what makes a client the holder.
type grant struct {
	store.Grant

	ttl      time.Duration    // that the store set at some moment after sent
	sent     watchdog.Instant // when the request was sent
	deadline watchdog.Instant // of trust
	waiters  int              // in the store, behind the holder
	message  bool             // it came by a message
}

// hold makes this client the key's holder and gives the lease to its first waiter.
func (s *stake) hold(g grant, st *Step) {
	a := s.attempt
	if s.key.waiters.first.Weight > g.Weight { // permits, for the waiter before it, which wanted fewer
		s.abandon(nil, st)
		return
	}
	s.loseForgotten(st)
	a.held = true
	s.attempt = nil
	if a.blocker != nil {
		st.Blocker = a.blocker.Token
	}
	h, l := s.key.waiters.first.Caller.NewHolding()
	s.holding = h
	*h = Holding{
		uncertain: a.uncertain,
		inFlight:  a.inFlight,
		way:       a.way(s.key.waiters.first, g.message),

		deadline: g.deadline,
		renewAt:  schedule{ttl: g.ttl, lane: int(s.key.Lane)}.renewAt(g.sent),
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
	s.handOut(l, g, st)
}

// give makes l, with the last token, the lease of w, or lets it lie with w.
func (s *stake) give(l *Lease, w *Waiter, lies bool, st *Step) {
	h := s.holding
	l.begin(h.last, s.owner, w.Terms, h.isUncertain())
	h.lease, w.Lease, w.Way = l, l, h.way
	if !lies {
		s.claim(w, st)
		return
	}
	l.tie()
	w.Stage, l.lying, h.unseen = Lying, w, false
	h.renewAt = min(h.renewAt, s.watchAt(st.Now))
	s.key.futures.lain, s.key.futures.lookAt = st.Now, st.Now.Add(firstLook)
}

// claim makes the lease its caller's.
func (s *stake) claim(w *Waiter, st *Step) {
	h, l := s.holding, w.Lease
	hasLain := h.unseen || l.lying != nil && (l.root == nil || s.isTenure())
	if l.lying != nil {
		if l.lying = nil; l.root != nil {
			l.root.lies--
		}
	}
	h.unseen = false
	if f := s.key.futures; f != &noFutures && !s.isTenure() {
		f.lieUntil = st.Now // somebody of this client has had it
	}
	if w.Stage = Claimed; w.Future {
		s.key.futures.vain = 0
	}
	if l.root != nil {
		s.countBounds(w, l.root, st.Now)
	} else {
		l.countBounds(st.Now)
	}
	if hasLain && !s.terms.Renew && !h.renewing && st.Now < h.deadline {
		h.renewing, h.again = true, false
		st.renewals.push(s.renewal(s.ttl(), st.Now)) // once, for the whole TTL that its caller is to have
	}
	w.Had = true
	st.decide(w)
}
