// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// Retention: after the last unlock the client keeps the key, as a holding without
// a lease. docs/design.md says when, and why that harms nobody. The idea is that
// of Chubby's clients, which keep a lock until the server tells them that another
// wants it: Burrows, "The Chubby lock service for loosely-coupled distributed
// systems" (2006), section 2.7 and the events of 2.5.

// retentionFor turns retention off where the store can't tell who wants a key, and
// says so once.
func (c *Client) retentionFor(s *lockSettings) {
	if s.retention == 0 || c.features.Retention {
		return
	}
	s.retention = 0
	c.refused.Do(func() {
		c.log.Add(slog.LevelWarn, "no key is retained: the store can't tell who else wants it")
	})
}

// retainedLocked reports whether the client has the key and nobody holds it.
func (s *keyState) retainedLocked() bool { return s.holding != nil && s.holding.lease == nil }

// mayRetainLocked reports whether the client may keep a key whose last lease has
// been unlocked and that nobody here waits for.
func (s *keyState) mayRetainLocked(now watchdog.Instant) bool {
	h := s.holding
	switch {
	case s.settings.retention == 0:
		return false
	case h.lease.waiter != nil:
		return false // it was never claimed
	case !h.notified || h.requested || h.cohort.waited:
		return false // others want it, or might without our hearing of it
	case h.failures > 0:
		return false // the store can't be reached, and neither can we
	case h.long:
		return false // should we die, others wait for the TTL and no longer
	case s.client.closing.Load():
		return false
	}
	return s.lastsLongEnoughLocked(now)
}

// retainLocked keeps the key for now.
func (s *keyState) retainLocked(now watchdog.Instant) {
	h := s.holding
	h.lease = nil
	h.retained = now.Add(s.settings.retention)
	h.cohort.since = 0 // nobody elsewhere has waited
	h.renewAt = min(h.renewAt, s.renewRetainedAt(now, s.ttl()))
	s.scheduleLocked()
}

// renewRetainedAt is when a retained key is to be renewed, whose TTL was set at sent.
// That is how one hears of others who could not send word, and so, unlike a held
// key, it is renewed as often as with the default TTL, however long its own is.
func (s *keyState) renewRetainedAt(sent watchdog.Instant, ttl time.Duration) watchdog.Instant {
	return schedule{ttl: min(ttl, DefaultTTL), lane: s.lane()}.renewAt(sent)
}

// retakeLocked gives a retained key to its first waiter, who has just come: at
// once if that may be, and else by way of the store.
func (s *keyState) retakeLocked() {
	now := watchdog.Refresh()
	if now < s.holding.retained && s.holding.failures == 0 && *s.waiters.first.settings == *s.settings &&
		s.lastsLongEnoughLocked(now) && s.holding.awaitTokenLocked(now) {
		s.deliverNextLocked()
		return
	}
	s.releaseRetainedLocked()
}

// tokenLooks is how often to look whether a token has come free: for some two microseconds
// at least, as a look at the clock takes ten nanoseconds.
const tokenLooks = 200

// awaitTokenLocked is hasTokenLocked for who can wait for a moment. Where a token
// comes free each microsecond the next one is never further away, and the store a
// hundred times as far.
func (h *holding) awaitTokenLocked(now watchdog.Instant) bool {
	if h.hasTokenLocked(now) {
		return true
	}
	for i := 0; h.grant.TokensFollowClock && i < tokenLooks; i++ {
		if h.hasTokenLocked(watchdog.Now()) {
			return true
		}
	}
	return false
}

// releaseRetainedLocked gives a retained key back, in the background.
func (s *keyState) releaseRetainedLocked() { s.releaseLocked(0).queue() }

// requestedLocked takes in that another client wants the key.
func (s *keyState) requestedLocked() {
	s.holding.requested = true
	if s.retainedLocked() {
		s.releaseRetainedLocked()
	}
}

// mayHaveMissedLocked takes in that we may not have heard who wants the key.
func (s *keyState) mayHaveMissedLocked() {
	switch {
	case s.attempt != nil:
		s.attempt.unnotified = true
	case s.retainedLocked():
		s.releaseRetainedLocked()
	default:
		s.holding.notified = false
	}
}
