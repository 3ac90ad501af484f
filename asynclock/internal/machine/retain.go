// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/asynclock/asynclock-go/watchdog"
)

// Retention: after the last unlock the client keeps the key, as a holding without a lease.
// docs/design.md says when the client does this, and why it harms nobody. The idea comes from
// Chubby's clients, which keep a lock until the server notifies them that another client requests
// it: Burrows, "The Chubby lock service for loosely-coupled distributed systems" (2006), section
// 2.7 and the events of 2.5.

// Retained reports whether the client has the key and nobody holds it.
func (k *Key) Retained() bool { return k.retained() != nil }

// mayRetain reports whether the client may keep a key whose last lease has been unlocked and for which
// no local waiter exists.
func (s *stake) mayRetain(st *Step) bool {
	h := s.holding
	switch {
	case s.terms.Retention == 0:
		return false
	case !h.notified || h.requested || h.cohort.waited || h.closed:
		return false // others request the key, or may do so without our being notified
	case h.failed != nil:
		return false // the store can't be reached, and it can't notify us either
	case h.long:
		return false // if this client dies, others wait for the TTL and no longer
	case st.Closing:
		return false
	}
	return s.lastsLongEnough(st.Now)
}

// retain keeps the key for now.
func (s *stake) retain(now watchdog.Instant) {
	h := s.holding
	h.lease = nil
	h.retained = now.Add(s.terms.Retention)
	h.cohort.since = 0 // no other client has waited
	h.renewAt = min(h.renewAt, watchfulSchedule(s.ttl(), int(s.key.Lane)).renewAt(now))
}

// LacksToken reports whether the key is retained and has no token for one more lease yet. It may have
// one some microseconds later.
func (k *Key) LacksToken(now watchdog.Instant) bool {
	s := k.retained()
	return s != nil && !s.isShared() && s.holding.grant.TokensFollowClock && !s.holding.hasToken(now)
}

// ReleaseRetained gives a retained key back, in the background. Readers may have retained it on several
// terms.
func (k *Key) ReleaseRetained(st *Step) {
	defer k.reconcile(st)
	k.releaseRetained(st)
}

func (k *Key) releaseRetained(st *Step) {
	for s := k.retained(); s != nil; s = k.retained() {
		s.releaseRetained(st)
	}
}

func (s *stake) releaseRetained(st *Step) {
	st.releases.push(s.release(0, st))
}

// requested is called when another client requests the key.
func (s *stake) requested(st *Step) {
	s.holding.requested, s.holding.closed = true, true // S3
	s.yield(st)
}

// mayHaveMissed is called when a notification of another client's request may have been lost.
func (s *stake) mayHaveMissed(st *Step) {
	if s.attempt != nil {
		s.attempt.unnotified, s.attempt.contended = true, true
		return
	}
	s.holding.notified, s.holding.closed = false, true
	s.holding.cohort.mayHaveMissed(st.Now)
	s.yield(st)
}
