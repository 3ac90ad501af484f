// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// Retention: after the last unlock the client keeps the key, as a holding without a lease.
// docs/design.md says when the client does this, and why it harms nobody. The idea comes from
// Chubby's clients, which keep a lock until the server notifies them that another client requests
// it: Burrows, "The Chubby lock service for loosely-coupled distributed systems" (2006), section
// 2.7 and the events of 2.5.

// retentionFor turns retention off if the store can't tell who requests a key. It logs that once.
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

// mayRetainLocked reports whether the client may keep a key whose last lease has been unlocked and
// for which no local waiter exists.
func (s *keyState) mayRetainLocked(now watchdog.Instant) bool {
	h := s.holding
	switch {
	case s.settings.retention == 0:
		return false
	case h.lease.waiter != nil:
		return false // never claimed
	case !h.notified || h.requested || h.cohort.waited:
		return false // others request the key, or may do so without our being notified
	case h.failures > 0:
		return false // the store can't be reached, and it can't notify us either
	case h.long:
		return false // if this client dies, others wait for the TTL and no longer
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
	h.cohort.since = 0 // no other client has waited
	h.renewAt = min(h.renewAt, s.renewRetainedAt(now, s.ttl()))
	s.scheduleLocked()
}

// renewRetainedAt returns when to renew a retained key whose TTL was set at sent. The renewal also
// detects clients that could not notify us. A retained key is therefore renewed as often as with
// the default TTL, however long its own TTL is. A held key is not.
func (s *keyState) renewRetainedAt(sent watchdog.Instant, ttl time.Duration) watchdog.Instant {
	return schedule{ttl: min(ttl, DefaultTTL), lane: s.lane()}.renewAt(sent)
}

// retakeLocked gives a retained key to its first waiter, which has just come. It does so at once if
// it is allowed to, and otherwise through the store.
func (s *keyState) retakeLocked() {
	now := watchdog.Refresh()
	if now < s.holding.retained && s.holding.failures == 0 && s.waiters.first.settings.terms == s.settings.terms &&
		s.lastsLongEnoughLocked(now) && s.holding.awaitTokenLocked(now) {
		s.deliverNextLocked()
		return
	}
	s.releaseRetainedLocked()
}

// tokenLooks is how often to check whether a token has become available. The checks take two
// microseconds at least, because reading the clock takes ten nanoseconds.
const tokenLooks = 200

// awaitTokenLocked is like hasTokenLocked but spins for up to 2 µs until a token becomes available.
// A round trip to the store costs a hundred times as much.
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

// requestedLocked is called when another client requests the key.
func (s *keyState) requestedLocked() {
	s.holding.requested = true
	if s.retainedLocked() {
		s.releaseRetainedLocked()
	}
}

// mayHaveMissedLocked is called when a notification of another client's request may have been lost.
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
