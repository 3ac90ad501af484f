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
	ErrIsReader = errors.New("it is a reader's")
	ErrIsJoined = errors.New("others share it by re-entry, or it shares another")
	ErrHasMin   = errors.New("it has a minimum hold")
)

// A Downgrade turns a writer's holding into a tenure of readers. The writer's lease has ended. Until the
// store has answered, nobody in this client has the key, and nobody gets it.
type Downgrade struct {
	Request store.ReleaseRequest // repeated until it is answered; it can be
	Timeout watchdog.Instant     // when the holding ends by itself

	terms *Terms // of the readers
}

// BeginDowngrade ends a writer's lease and returns what to request.
func (k *Key) BeginDowngrade(l *Lease, now watchdog.Instant, fx *Effects) (*Downgrade, error) {
	k.Check(l, 0, now, fx)
	switch {
	case l.Err != nil:
		return nil, l.Err
	case l.Terms.Mode == store.Shared:
		return nil, ErrIsReader
	case l.first != nil || l.joiner != nil:
		return nil, ErrIsJoined
	case l.Terms.MinHold > 0:
		return nil, ErrHasMin
	}
	s := k.stakeOf(l.Owner)
	h := s.holding
	terms := *s.terms
	terms.Mode = store.Shared
	h.downgrading = true
	h.unanswered++ // a renewal's or this request's late effect: the release that follows a failure is not Clean
	l.unlocked = true
	s.end(l, ErrUnlocked, fx)
	s.queueJoiners(now, fx)
	s.schedule(fx)
	return &Downgrade{
		Request: store.ReleaseRequest{Key: k.Name, Owner: s.owner, Token: h.last, Rest: &store.Share{Mode: store.Shared}},
		Timeout: h.deadline,
		terms:   &terms,
	}, nil
}

// EndDowngrade handles the store's last answer. If the holding goes on, w gets the lease of a reader.
// Otherwise w fails, and the key is given up.
func (k *Key) EndDowngrade(d *Downgrade, w *Waiter, reply *store.ReleaseReply, now watchdog.Instant, fx *Effects) {
	s := k.stakeOf(d.Request.Owner)
	switch {
	case s == nil: // lost meanwhile
		fx.fail(w, store.ErrExpired)
	case reply.Err == nil && reply.WasHeld && now < s.holding.deadline:
		s.downgraded(d, w, reply.Grant, now, fx)
	case reply.Err == nil && !reply.WasHeld:
		fx.fail(w, failure.Lost(reply.Cause))
		s.lose(failure.Lost(reply.Cause), now, fx)
	case now >= s.holding.deadline:
		fx.fail(w, store.ErrExpired)
		s.tick(now, fx)
	default:
		// The store may have readers by now, so the key must not pass to another writer in this client.
		fx.fail(w, reply.Err)
		fx.releases.push(s.release(0, now, fx))
	}
}

// downgraded makes the holding a tenure whose first reader is w.
func (s *stake) downgraded(d *Downgrade, w *Waiter, g store.Grant, now watchdog.Instant, fx *Effects) {
	h := s.holding
	s.terms, w.Terms = d.terms, d.terms
	h.downgrading = false
	h.grant, h.last = g, g.Token
	h.closed = h.closed || h.requested || h.cohort.waited || !s.isJoinable()
	h.renewAt = min(h.renewAt, watchfulSchedule(s.ttl(), s.key.host.Lane()).renewAt(now))
	if h.cohort.watch = true; !h.cohort.watching { // S1: the store has to be asked
		h.renewAt = now
	}
	s.setRoot(s.key.host.NewLease(w))
	s.admit(w, now, fx)
	s.admitRow(now, fx)
}
