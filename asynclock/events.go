// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// gapSpread is the time over which waiters repeat their requests after messages may have been lost.
// Otherwise all of them would reach the server at the same moment, just after it has come back.
const gapSpread = 50 * time.Millisecond

// onEvent handles a notification of the store. Each notification is a hint that may be late,
// repeated or forged. Only a grant can make a holder, because it names a secret that only the store
// was given.
func (c *Client) onEvent(e store.Event) {
	if e.Kind == store.EventResync || e.Kind == store.EventDisconnected {
		c.onMissedEvents(&e)
		return
	}
	s := c.byOwner(e.Owner)
	if s == nil {
		return // the owner is forgotten; see W7 in docs/design.md
	}
	defer s.shard.mu.Unlock()
	switch {
	case s.attempt != nil:
		s.eventWhileWaitingLocked(&e)
	case s.holding != nil:
		s.eventWhileHoldingLocked(&e)
	}
}

func (s *keyState) eventWhileWaitingLocked(e *store.Event) {
	switch e.Kind {
	case store.EventGrant:
		s.onGrantLocked(e, watchdog.Refresh())
	case store.EventWake:
		s.requestAgainLocked()
	case store.EventQueued, store.EventRequested:
		// We have the key, but the notification of the grant has not come yet. Others request the
		// key.
		s.attempt.unnotified = true
	}
}

func (s *keyState) eventWhileHoldingLocked(e *store.Event) {
	switch e.Kind {
	case store.EventQueued:
		s.holding.cohort.contendedLocked(watchdog.Refresh(), max(e.Waiters, 1))
		s.requestedLocked()
	case store.EventRequested:
		s.requestedLocked()
	case store.EventForced:
		s.lostByEventLocked(ErrForced)
	case store.EventLost:
		s.lostByEventLocked(lossCause(e.Err))
	}
}

// lostByEventLocked ends the lease because of a notification. A process that was stopped reads the
// notification late, perhaps before its watchdog runs. If the lease's time has passed by then, that
// has ended the lease, and what the store did later is no cause. An expiry keeps its circumstances.
func (s *keyState) lostByEventLocked(cause error) {
	if now := watchdog.Refresh(); now >= s.holding.endLocked() && !errors.Is(cause, ErrExpired) {
		s.tickLocked(now)
		return
	}
	s.loseLocked(cause)
}

// lossCause returns the cause of a loss, from the store's error.
func lossCause(err error) error {
	if errors.Is(err, ErrLost) {
		return err
	}
	return ErrExpired
}

// onGrantLocked decides whether a message makes this client the holder.
func (s *keyState) onGrantLocked(e *store.Event, now watchdog.Instant) {
	a := s.attempt
	if e.Grant.Token <= a.mark {
		// W4: a later request was answered "wait", so this grant had expired by then. Base comes
		// from that request, so it is no proof here. The store is still asked again, since a mark
		// can also be ahead of a new grant: if a server lost its data and its clock lags.
		s.client.log.Add(slog.LevelDebug, "dropped a stale grant",
			slog.String("key", s.key), slog.Int64("token", e.Grant.Token))
		s.requestAgainLocked()
		return
	}
	deadline := trustUntil(a.base, e.GrantTTL)
	if tooLate(deadline.Sub(now), e.GrantTTL) || !s.settings.renew {
		// W5. A lease without renewal must last for its own TTL, not for the TTL of the grant.
		// Another request sets it.
		s.requestAgainLocked()
		return
	}
	s.holdLocked(e.Grant, e.GrantTTL, a.base, deadline, e.Waiters)
}

// onMissedEvents is called when messages may have been lost, or will be. When they come through
// again, every waiter repeats its request; this is W10.
func (c *Client) onMissedEvents(e *store.Event) {
	now := watchdog.Now()
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		for _, s := range sh.keys {
			if e.OneLane && e.Lane != s.lane() {
				continue
			}
			s.mayHaveMissedLocked()
			switch {
			case s.attempt == nil || e.Kind != store.EventResync:
			case s.attempt.inFlight > 0:
				s.requestAgainLocked()
			default:
				c.watchdog.Set(&s.entry, now.Add(rand.N(gapSpread)))
			}
		}
		sh.mu.Unlock()
	}
}
