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

// onEvent takes in what the store has to tell. Each event is a hint that may be
// late, repeated or forged; none makes a holder by itself but a grant, and that
// one names a secret only the store was given.
func (c *Client) onEvent(e store.Event) {
	if e.Kind == store.EventResync || e.Kind == store.EventDisconnected {
		c.onSilence(&e)
		return
	}
	s := c.byOwner(e.Owner)
	if s == nil {
		return // the owner's part is over; see W7 in docs/design.md
	}
	defer s.shard.mu.Unlock()
	now := watchdog.Refresh()
	switch {
	case e.Kind == store.EventGrant && s.attempt != nil:
		s.onGrantLocked(&e, now)
	case e.Kind == store.EventWake && s.attempt != nil:
		s.askAgainLocked()
	case e.Kind == store.EventQueued && s.tenure != nil:
		s.tenure.cohort.contendedLocked(now, max(e.Waiters, 1))
		s.wantedLocked()
	case e.Kind == store.EventRequested && s.tenure != nil:
		s.wantedLocked()
	case (e.Kind == store.EventQueued || e.Kind == store.EventRequested) && s.attempt != nil:
		s.attempt.deaf = true // the key is ours, which we have yet to hear, and others want it
	case e.Kind == store.EventForced && s.tenure != nil:
		s.loseLocked(ErrForced)
	case e.Kind == store.EventLost && s.tenure != nil:
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
		s.client.notes.Add(slog.LevelDebug, "dropped a stale grant",
			slog.String("key", s.key), slog.Int64("token", e.Grant.Token))
		s.askAgainLocked()
		return
	}
	deadline := trustUntil(a.base, e.GrantTTL)
	if tooLate(deadline.Sub(now), e.GrantTTL) || !s.settings.renew {
		// W5. A lease that is not renewed is to last for its TTL, not for that of
		// the grant: asking again sets it.
		s.askAgainLocked()
		return
	}
	s.holdLocked(e.Grant, e.GrantTTL, a.base, deadline, e.Waiters)
}

// onSilence takes in that messages may have been lost, or will be. When they come
// through again every waiter asks again, which is W10.
func (c *Client) onSilence(e *store.Event) {
	now := watchdog.Now()
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		for _, s := range sh.keys {
			if e.OneLane && e.Lane != s.lane() {
				continue
			}
			s.unheardLocked()
			switch {
			case s.attempt == nil || e.Kind != store.EventResync:
			case s.attempt.inFlight > 0:
				s.askAgainLocked()
			default:
				c.watchdog.Set(&s.entry, now.Add(rand.N(gapSpread)))
			}
		}
		sh.mu.Unlock()
	}
}
