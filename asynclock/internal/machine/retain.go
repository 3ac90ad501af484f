// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Retention: after the last unlock the client keeps the key, as a holding without a lease.
// docs/design.md says when the client does this, and why it harms nobody. The idea comes from
// Chubby's clients, which keep a lock until the server notifies them that another client requests
// it: Burrows, "The Chubby lock service for loosely-coupled distributed systems" (2006), section
// 2.7 and the events of 2.5.

// Retained reports whether the client has the key and nobody holds it.
func (k *Key) Retained() bool { return k.holding != nil && k.holding.lease == nil }

// mayRetain reports whether the client may keep a key whose last lease has been unlocked and for which
// no local waiter exists.
func (k *Key) mayRetain(now watchdog.Instant) bool {
	h := k.holding
	switch {
	case k.terms.Retention == 0:
		return false
	case h.lease.waiter != nil:
		return false // never claimed
	case !h.notified || h.requested || h.cohort.waited:
		return false // others request the key, or may do so without our being notified
	case h.failures > 0:
		return false // the store can't be reached, and it can't notify us either
	case h.long:
		return false // if this client dies, others wait for the TTL and no longer
	case k.host.Closing():
		return false
	}
	return k.lastsLongEnough(now)
}

// retain keeps the key for now.
func (k *Key) retain(now watchdog.Instant, fx *Effects) {
	h := k.holding
	h.lease = nil
	h.retained = now.Add(k.terms.Retention)
	h.cohort.since = 0 // no other client has waited
	h.renewAt = min(h.renewAt, retainedSchedule(k.ttl(), k.host.Lane()).renewAt(now))
	k.schedule(fx)
}

// retainedSchedule returns when to renew a retained key. The renewal also detects clients that could
// not notify us. A retained key is therefore renewed as often as with the default TTL, however long
// its own TTL is. A held key is not.
func retainedSchedule(ttl time.Duration, lane int) schedule {
	return schedule{ttl: min(ttl, store.DefaultTTL), lane: lane}
}

// retake gives a retained key to its first waiter, which has just come. It does so at once if it is
// allowed to, and otherwise through the store.
func (k *Key) retake(now watchdog.Instant, fx *Effects) {
	h := k.holding
	if now < h.retained && h.failures == 0 && *k.waiters.first.Terms == *k.terms &&
		k.lastsLongEnough(now) && h.hasToken(now) {
		k.deliverNext(now, fx)
		return
	}
	k.ReleaseRetained(now, fx)
}

// LacksToken reports whether the key is retained and has no token for one more lease yet. It may have
// one some microseconds later.
func (k *Key) LacksToken(now watchdog.Instant) bool {
	return k.Retained() && k.holding.grant.TokensFollowClock && !k.holding.hasToken(now)
}

// ReleaseRetained gives a retained key back, in the background.
func (k *Key) ReleaseRetained(now watchdog.Instant, fx *Effects) {
	fx.releases.push(k.release(0, now, fx))
}

// requested is called when another client requests the key.
func (k *Key) requested(now watchdog.Instant, fx *Effects) {
	k.holding.requested = true
	if k.Retained() {
		k.ReleaseRetained(now, fx)
	}
}

// mayHaveMissed is called when a notification of another client's request may have been lost.
func (k *Key) mayHaveMissed(now watchdog.Instant, fx *Effects) {
	switch {
	case k.attempt != nil:
		k.attempt.unnotified = true
	case k.Retained():
		k.ReleaseRetained(now, fx)
	default:
		k.holding.notified = false
	}
}
