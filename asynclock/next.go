// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// giveToNextLocked decides what happens to a key whose lease has ended. The first local waiter gets
// the key if it is allowed to; otherwise the client retains it. In all other cases giveToNextLocked
// returns the release to send.
func (s *keyState) giveToNextLocked() *releaseCall {
	now := watchdog.Refresh()
	s.queueJoinersLocked()
	keep := s.holding.lease.holdBackLocked(now)
	next := s.waiters.first
	switch {
	case keep > 0:
	case next != nil && s.mayPassLocallyLocked(next, now):
		s.passLocallyLocked(now)
		return nil
	case next == nil && s.mayRetainLocked(now):
		s.retainLocked(now)
		return nil
	}
	call := s.releaseLocked(keep)
	if call.requeue != nil {
		call.requeue.request.QueueLimit = 0 // they were admitted long ago
	}
	return call
}

// releaseLocked ends the holding and returns the release to send. The local waiters queue with the
// same request.
func (s *keyState) releaseLocked(keep time.Duration) *releaseCall {
	h := s.holding
	call := &releaseCall{
		alone: [1]store.ReleaseRequest{{
			Key: s.key, Owner: s.owner, Token: h.last, HoldBack: keep,
			Uncertain: h.uncertainLocked(),
			Clean:     h.unanswered == 0 && !h.uncertainLocked(),
		}},
		client:  s.client,
		lane:    s.lane(),
		ttl:     s.settings.ttl,
		until:   h.deadline.Add(s.settings.ttl),
		trusted: h.deadline,
	}
	call.request, call.entry.Task = &call.alone[0], call
	s.client.underWay.Add(1)
	s.forgetOwnerLocked()
	if s.waiters.first != nil {
		call.requeue = s.contendLocked()
		call.request.Requeue = call.requeue.request
	} else {
		s.dropLocked()
	}
	return call
}

// revokeUnclaimedLocked ends a granted lease that nobody claimed, and passes the key on.
func (s *keyState) revokeUnclaimedLocked(reason error) {
	l := s.holding.lease
	l.waiter.failLocked(reason)
	l.unlocked = true // a later Unlock must not release the owner, who may be the next waiter's by then
	l.endLocked(reason)
	if call := s.giveToNextLocked(); call != nil {
		call.queue()
	}
}

// contendOrDropLocked is called when this client has nothing left in the store for the key. Either
// the next waiter contends, or the state is dropped.
func (s *keyState) contendOrDropLocked() { s.contendAfterLocked(nil) }

// contendAfterLocked is contendOrDropLocked after failures, which the next attempt continues to
// count.
func (s *keyState) contendAfterLocked(t *trouble) {
	if s.waiters.first == nil {
		s.dropLocked()
		return
	}
	now := watchdog.Now()
	s.beginLocked(now)
	s.attempt.trouble = t
	s.client.send(s.requestLocked())
	s.watchTroubleLocked(now)
}
