// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// Bounds of cohort handoff while another client waits: after so many handoffs, or after so long,
// the key goes to the store's queue and this client queues behind. While no other client waits,
// there is no bound.
//
// The technique is lock cohorting: Dice, Marathe and Shavit, "Lock Cohorting: A General Technique
// for Designing NUMA Locks" (2012), with a client in the place of a NUMA node.
const (
	cohortHandoffs = 128
	cohortTime     = 10 * time.Millisecond
)

// cohortRenewal is how often a holding that passes from lease to lease asks the store for other
// waiters, in case the notification was lost.
const cohortRenewal = 100 * time.Millisecond

// A cohort is the knowledge of a holding about waiters elsewhere, and how much of its bounds it has
// used.
type cohort struct {
	since   watchdog.Instant // when the bounds began to count; 0: they do not count
	renewed watchdog.Instant // when the store was last asked
	missed  watchdog.Instant // when a notification may have been lost; 0: never

	handoffs int32 // since the bounds count; before that it is meaningless and may wrap around
	waited   bool  // another client waits, as far as we know
	watch    bool  // ask to be notified when the first one comes; once asked, always
	watching bool  // the store has agreed to notify
}

// mayPassLocally reports whether the key may pass to a waiter with the same terms without the store.
func (s *stake) mayPassLocally(now watchdog.Instant) bool {
	return !s.holding.long && // the store was asked on these terms
		s.lastsLongEnough(now) && s.holding.hasToken(now) && s.holding.cohort.mayPass(now)
}

// lastsLongEnough reports whether the holding lasts long enough for another lease.
func (s *stake) lastsLongEnough(now watchdog.Instant) bool {
	ttl := grantTTL(s.terms.TTL)
	switch {
	case s.holding.forced != 0:
		return false // it may be another's: the store is being asked
	case s.holding.unseen:
		ttl = min(ttl, s.ttl()) // nothing of it was used
	case !s.terms.Renew:
		return false // the next lease would get only the rest of the TTL
	}
	return !tooLate(s.holding.deadline.Sub(now), ttl) // otherwise the store has to confirm it
}

// hasToken reports whether the holding has a token for one more lease. The store will give this token
// to nobody else, even if it is never told about the lease.
func (h *Holding) hasToken(now watchdog.Instant) bool {
	next := h.last + 1 - h.grant.Token
	if h.grant.Token == 0 || h.unseen || next <= h.grant.Reserved {
		return true // no tokens at all, or one that nobody has seen, or one set aside
	}
	elapsed := now.Sub(h.granted)
	elapsed -= elapsed / 100 // the store's clock may be slower by that
	return h.grant.TokensFollowClock && next-h.grant.Reserved <= elapsed.Microseconds()
}

func (c *cohort) mayPass(now watchdog.Instant) bool {
	if c.watching && !c.waited {
		return true
	}
	if c.since == 0 { // another client waits, or may wait: from here on the bounds count
		c.since, c.handoffs = now, 0
	}
	return c.handoffs < cohortHandoffs && now.Sub(c.since) < cohortTime
}

// passLocally hands the key on within the client. It reports false if nobody is to have it.
func (s *stake) passLocally(st *Step) bool {
	h := s.holding
	h.cohort.watch = true
	if !s.deliverNext(fewTries, st) {
		return false
	}
	h.cohort.handoffs++
	s.askForOthers(st)
	return true
}

// askForOthers asks the store whether another client waits, after something has passed inside this one.
func (s *stake) askForOthers(st *Step) {
	h := s.holding
	if !h.renewing && h.failed == nil && (!h.cohort.watching || st.Now.Sub(h.cohort.renewed) > cohortRenewal) {
		s.renew(st)
	}
}

// deliverNext gives the key to a waiter, as another lease of the holding, or lets it lie. Tries is how many
// idle futures are tried. It reports false if nobody is to have the key.
func (s *stake) deliverNext(tries int32, st *Step) bool {
	w, lies := s.choose(tries, st)
	if w == nil {
		return false
	}
	s.deliver(w, lies, st)
	return true
}

func (s *stake) deliver(w *Waiter, lies bool, st *Step) {
	h := s.holding
	if h.way = h.nextWay(); h.way == WayLocal && !h.unseen {
		st.Blocker = h.last
	}
	if !h.unseen && h.grant.Token != 0 { // otherwise the store has none
		h.last++
	}
	s.give(w.Caller.NewLease(), w, lies, st)
}

// renewedAt handles the waiters that a renewal, sent at sent, has reported.
func (c *cohort) renewedAt(sent, now watchdog.Instant, watching bool, remote int) {
	c.renewed = sent
	c.watching = c.watching || watching && sent >= c.missed
	c.contended(now, remote)
	if remote == 0 && c.watching {
		c.since = 0 // no other client waits, and the next one will be announced
	}
}

// mayHaveMissed handles that a notification may have been lost. From here on the bounds count, until the store has
// answered a later renewal.
func (c *cohort) mayHaveMissed(now watchdog.Instant) { c.missed, c.watching = now, false }

// contended starts the bounds, unless they already count.
func (c *cohort) contended(now watchdog.Instant, remote int) {
	c.waited = remote > 0
	if c.since == 0 && remote > 0 {
		c.since, c.handoffs = now, 0
	}
}
