// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"

	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Why a lease can't be downgraded.
var (
	ErrNoWriter = errors.New("it is not a writer's")
	ErrIsJoined = errors.New("others share it by re-entry, or it shares another")
	ErrHasMin   = errors.New("it has a minimum hold")
)

// A Downgrade turns a writer's holding into a tenure of readers. The writer's lease has ended. Until the
// store has answered, nobody in this client has the key, and nobody gets it.
type Downgrade struct {
	Request store.ReleaseRequest // repeated until it is answered; it can be
	Timeout watchdog.Instant     // when the holding ends by itself

	terms *Terms           // of the readers
	bound watchdog.Instant // the end by MaxHold, which counts from the writer's claim; 0: none
	cause error            // why the holding was lost meanwhile; nil: it was not
}

// lost notes why the holding ends.
func (d *Downgrade) lost(cause error) {
	if d != nil {
		d.cause = cause
	}
}

// BeginDowngrade ends a writer's lease and returns what to request.
func (k *Key) BeginDowngrade(l *Lease, st *Step) (*Downgrade, error) {
	defer k.reconcile(st)
	if k.check(l, 0, st) && l.root == nil && l.lies > 0 {
		k.stakeOf(l.Owner).recall(st)
	}
	switch {
	case l.Err != nil:
		return nil, l.Err
	case l.Terms.Mode != store.Exclusive:
		return nil, ErrNoWriter
	case l.root != nil || l.joiner != nil:
		return nil, ErrIsJoined
	case l.Terms.MinHold > 0:
		return nil, ErrHasMin
	}
	s := k.stakeOf(l.Owner)
	h := s.holding
	terms := *s.terms
	terms.Mode = store.Shared
	h.unanswered++ // this request may take effect late: the release that follows a failure is not Clean
	l.unlocked = true
	s.end(l, ErrUnlocked, st)
	h.downgrade = &Downgrade{
		Request: store.ReleaseRequest{Key: k.Name, Owner: s.owner, Token: h.last, Rest: &store.Share{Mode: store.Shared}},
		Timeout: h.deadline,
		terms:   &terms,
		bound:   l.bound,
	}
	return h.downgrade, nil
}

// EndDowngrade handles the store's last answer. If the holding goes on, w gets the lease of a reader.
// Otherwise w fails, and the key is given up.
func (k *Key) EndDowngrade(d *Downgrade, w *Waiter, reply *store.ReleaseReply, st *Step) {
	defer k.reconcile(st)
	s := k.stakeOf(d.Request.Owner)
	if s != nil && st.Now >= s.holding.end() {
		s.tick(st)
		s = nil
	}
	switch {
	case s == nil:
		k.downgradeLost(d, w, st)
	case reply.Err == nil && reply.WasHeld && reply.Grant.Token > s.holding.last:
		s.downgraded(d, w, reply.Grant, st)
	case reply.Err == nil: // nothing was held, or nothing of it goes on
		s.lose(s.holding.whyLost(failure.Lost(reply.Cause)), st)
		st.fail(w, d.cause)
	default:
		// The store may have readers by now, so the key must not pass to another writer in this client.
		st.fail(w, reply.Err)
		st.releases.push(s.giveBack(0, st))
	}
}

// downgradeLost handles the answer for a holding that was lost meanwhile. Nobody is at work any more, so
// the key need not be kept for the rest of the TTL.
func (k *Key) downgradeLost(d *Downgrade, w *Waiter, st *Step) {
	st.fail(w, d.cause)
	if !errors.Is(d.cause, store.ErrClosed) {
		request := d.Request
		request.Rest, request.Uncertain = nil, true
		k.withdraw(request, d.terms.TTL, st)
	}
}

// downgraded makes the holding a tenure whose first reader is w.
func (s *stake) downgraded(d *Downgrade, w *Waiter, g store.Grant, st *Step) {
	h := s.holding
	s.terms, w.Terms = d.terms, d.terms
	h.downgrade = nil
	h.grant, h.last = g, g.Token
	h.closed = h.closed || h.requested || h.cohort.waited || !s.isJoinable()
	h.renewAt = min(h.renewAt, watchfulSchedule(s.ttl(), int(s.key.Lane)).renewAt(st.Now))
	if h.cohort.watch = true; !h.cohort.watching || h.forced != 0 { // S1: the store has to be asked
		h.renewAt = st.Now
	}
	s.setRoot(w.Caller.NewLease())
	h.lease.bound = d.bound
	h.way = WayDowngraded
	s.admit(w, h.lease, st)
	h.way = WayLocal
	s.admitRow(st)
}
