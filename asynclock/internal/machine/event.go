// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// gapSpread is the time over which waiters repeat their requests after messages may have been lost.
// Otherwise all of them would reach the server at the same moment, just after it has come back.
const gapSpread = 50 * time.Millisecond

// Event handles a notification of the store for an owner of this key. Each notification is a hint that
// may be late, repeated or forged, except for EventLost, which is no message. Only a grant can make a holder,
// because it names a secret that only the store was given.
func (k *Key) Event(e *store.Event, st *Step) {
	defer k.reconcile(st)
	s := k.stakeOf(e.Owner)
	switch {
	case s == nil:
	case s.attempt != nil:
		s.eventWhileWaiting(e, st)
	case s.holding != nil:
		s.eventWhileHolding(e, st)
	}
}

func (s *stake) eventWhileWaiting(e *store.Event, st *Step) {
	switch e.Kind {
	case store.EventGrant:
		s.onGrant(e, st)
	case store.EventWake:
		s.requestAgain(st)
	case store.EventQueued, store.EventRequested:
		// We have the key, but the notification of the grant has not come yet. Others request the
		// key.
		s.attempt.unnotified, s.attempt.contended = true, true
	}
}

func (s *stake) eventWhileHolding(e *store.Event, st *Step) {
	switch e.Kind {
	case store.EventQueued:
		s.anotherQueued(e, st)
	case store.EventWake:
		if s.isBlock() {
			s.limitChanged(st)
		}
	case store.EventRequested:
		s.requested(st)
	case store.EventForced:
		s.mayBeForced(st)
	case store.EventLost:
		s.lostByEvent(lossCause(e.Err), st)
	}
}

// anotherQueued handles that another client has queued, or this one for permits beside those it has. Only
// the first in the queue is announced, so this client may then have others behind it. A block that passes
// permits on finds out: askForOthers.
func (s *stake) anotherQueued(e *store.Event, st *Step) {
	if s.isBlock() && s.others(1) == 0 {
		return
	}
	s.holding.cohort.contended(st.Now, max(e.Waiters, 1))
	s.requested(st)
}

// mayBeForced handles a message that somebody took the key. Others may be able to forge it, so the
// store is asked, by a renewal. Until a renewal that was sent after it is answered, each failed one is repeated.
func (s *stake) mayBeForced(st *Step) {
	h := s.holding
	if st.Now >= h.end() {
		s.tick(st)
		return
	}
	h.forced = st.Now
	s.renewNow(st)
}

// lostByEvent ends the lease because the store itself has seen that the holding is over. A process that was stopped
// reads the notification late, perhaps before its watchdog runs. If the lease's time has passed by then, that
// has ended the lease, and what the store did later is no cause. An expiry keeps its circumstances.
func (s *stake) lostByEvent(cause error, st *Step) {
	if st.Now >= s.holding.end() && !errors.Is(cause, store.ErrExpired) {
		s.tick(st)
		return
	}
	s.lose(cause, st)
}

// lossCause returns the cause of a loss, from the store's error.
func lossCause(err error) error {
	if errors.Is(err, store.ErrLost) {
		return err
	}
	return store.ErrExpired
}

// onGrant decides whether a message makes this client the holder.
func (s *stake) onGrant(e *store.Event, st *Step) {
	a := s.attempt
	if e.Grant.Token <= a.mark {
		// W4: a later request was answered "wait", so this grant had expired by then. Base comes
		// from that request, so it is no proof here. The store is still asked again, since a mark
		// can also be ahead of a new grant: if a server lost its data and its clock lags.
		st.note(slog.LevelDebug, "dropped a stale grant",
			slog.String("key", s.key.Name), slog.Int64("token", e.Grant.Token))
		s.requestAgain(st)
		return
	}
	deadline := trustUntil(a.base, e.GrantTTL)
	if tooLate(deadline.Sub(st.Now), e.GrantTTL) || !s.terms.Renew {
		// W5. A lease without renewal must last for its own TTL, not for the TTL of the grant.
		// Another request sets it.
		s.requestAgain(st)
		return
	}
	s.hold(grant{e.Grant, e.GrantTTL, a.base, deadline, e.Waiters, true}, st)
}

// Missed handles that messages may have been lost. If they come through again, the waiter repeats its
// request; this is W10.
func (k *Key) Missed(comeAgain bool, st *Step) {
	defer k.reconcile(st)
	for s := &k.stakes; s != nil; {
		next := s.next
		if !s.isUnused() {
			s.mayHaveMissed(st)
		}
		s = next
	}
	s := k.contender()
	switch {
	case s == nil || !comeAgain:
	case s.attempt.inFlight > 0:
		s.requestAgain(st)
	default:
		s.requestAt(st.Now.Add(rand.N(gapSpread)), st.Now)
	}
}
