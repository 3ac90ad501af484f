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

// gapSpread is the time over which waiters ask again after messages may have
// been lost, so that a server that has just come back is not met by all at
// once.
const gapSpread = 50 * time.Millisecond

// onEvent takes in a notification of the store. Each is a hint that may be late, repeated
// or forged. Only a grant can make a holder, because it names a secret that only the store
// was given.
func (c *Client) onEvent(e store.Event) {
	if e.Kind == store.EventResync || e.Kind == store.EventDisconnected {
		c.onMissedEvents(&e)
		return
	}
	s := c.byOwner(e.Owner)
	if s == nil {
		return // the owner's part is over; see W7 in docs/design.md
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
		// The key is granted to us, of which no notification has come, and others want it.
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
		s.loseLocked(ErrForced)
	case store.EventLost:
		s.loseLocked(lossCause(e.Err))
	}
}

// lossCause is why a holding was lost, as a store says it.
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
		// W4: a later request has already been answered "wait", so this grant
		// had run out by then. Base is from that request and says nothing of it. The
		// store is asked all the same, since a mark can be ahead of a new grant, too:
		// where a server forgot that much, and its clock lags.
		s.client.log.Add(slog.LevelDebug, "dropped a stale grant",
			slog.String("key", s.key), slog.Int64("token", e.Grant.Token))
		s.requestAgainLocked()
		return
	}
	deadline := trustUntil(a.base, e.GrantTTL)
	if tooLate(deadline.Sub(now), e.GrantTTL) || !s.settings.renew {
		// W5. A lease that is not renewed is to last for its TTL, not for that of
		// the grant: asking again sets it.
		s.requestAgainLocked()
		return
	}
	s.holdLocked(e.Grant, e.GrantTTL, a.base, deadline, e.Waiters)
}

// onMissedEvents takes in that messages may have been lost, or will be. When they come
// through again every waiter asks again, which is W10.
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
