// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// How a client's times follow from the TTL. docs/design.md derives them.

// trustUntil returns the trust deadline of a lease whose TTL the store set at some moment after
// sent. The count begins before the request, never at its reply, so this deadline precedes the
// store's however slow the network was. A hundredth of the TTL allows for clocks that run at
// different rates. Another 5 ms allow for the store's resolution. A tenth of the TTL is left for
// callers to stop working when the lease's context ends.
func trustUntil(sent watchdog.Instant, ttl time.Duration) watchdog.Instant {
	return sent.Add(ttl - ttl/100 - 5*time.Millisecond - ttl/10)
}

// ttlThatCounts returns the TTL of a holding. The store may have promised less than was requested.
func ttlThatCounts(asked, promised time.Duration) time.Duration {
	if promised > 0 {
		return min(asked, promised)
	}
	return asked
}

// heartbeat returns how often a waiter repeats its request, whatever notifications it has or has
// not received. It bounds the cost of a lost message, so it does not grow with a long TTL.
func heartbeat(ttl time.Duration) time.Duration { return min(ttl/10, 3*time.Second) }

// grantTTL returns how long a granted key stays with a waiter that sends no further request. A
// silent waiter keeps its place for as long. It is more than two heartbeats, so one lost message
// costs only time.
func grantTTL(ttl time.Duration) time.Duration { return 3 * heartbeat(ttl) }

// tooLate reports whether so little trust is left that a grant must not be handed out before the
// store has confirmed it.
func tooLate(left, ttl time.Duration) bool { return left < ttl/5 }

// CallTimeout bounds one call to the store on behalf of a waiter.
func CallTimeout(ttl time.Duration) time.Duration {
	return min(max(ttl/4, 50*time.Millisecond), time.Second)
}

// secondTry returns how long TryLock gives a client that may only retain the key to give it back. A
// client that is as far from the store as we are is notified and answers in the time that our first
// request took.
func secondTry(answered, limit time.Duration) time.Duration {
	return min(max(2*answered, 5*time.Millisecond), limit)
}

// jitter returns d changed at random by up to a fifth in either direction.
func jitter(d time.Duration) time.Duration { return backoff.Jitter(d, 0.2) }

// Patience returns how long a waiter tolerates a store that fails every call before its caller gets
// an error.
func Patience(ttl time.Duration) time.Duration {
	return min(max(ttl/3, time.Second), 10*time.Second)
}

// holdTTL returns the TTL to request when the key is needed for at most bound. It is just large
// enough for trust to last to the bound, so that the store frees the key soon afterwards.
func holdTTL(ttl, bound time.Duration) time.Duration {
	return min(ttl, max(bound+bound/5+10*time.Millisecond, store.MinTTL))
}

// RetryIn returns how long to wait after this many failed calls in a row.
func RetryIn(failures int, ttl time.Duration) time.Duration {
	return schedule{ttl: ttl}.retryIn(failures)
}

// A schedule computes when a lease of one TTL is renewed.
//
// With a TTL of 15 s, the trust deadline is at 13.3 s and the first renewal is due at about 5 s.
// The time from then to the deadline is enough for seven attempts that all hang, or for some twenty
// that fail at once.
type schedule struct {
	// ttl is the TTL that each renewal sets.
	ttl time.Duration
	// lane is the number of the lane in which renewals share calls. Leases of different lanes need
	// different calls anyway, so their renewals should be due at different times.
	lane int
}

// renewAt returns when to renew a lease that was last extended at sent: after a third of the TTL.
// Renewal times lie on a grid of a fifteenth of the TTL, so that leases taken one by one are
// renewed in batches. Only the first renewal is early because of the grid: a third is five
// fifteenths. The grid of each of the 256 lanes is shifted a little, so that they do not all reach
// the server at once.
func (s schedule) renewAt(sent watchdog.Instant) watchdog.Instant {
	grid := watchdog.Instant(max(s.ttl/15, time.Millisecond))
	at := sent.Add(s.ttl / 3)
	return at - (at+grid/256*watchdog.Instant(s.lane%256))%grid
}

// retryIn returns how long to wait after this many failures in a row: 50 ms, doubled each time, at
// most a thirtieth of the TTL, with a jitter of a fifth.
func (s schedule) retryIn(failures int) time.Duration {
	wait := 50 * time.Millisecond << min(max(failures-1, 0), 10)
	return jitter(max(min(wait, s.ttl/30), time.Millisecond))
}

// timeout returns how long to wait for one renewal before the next attempt. A late answer still
// counts. The timeout depends on how long the lease is still trusted and on how many attempts in a
// row have failed. It is a second, doubled with each failure, because a slow server still has the
// earlier attempts in its queue. It is at most a quarter of remaining, so that several attempts fit
// however each one fails.
func (s schedule) timeout(remaining time.Duration, failures int) time.Duration {
	return max(min(remaining/4, time.Second<<min(max(failures, 0), 10)), 5*time.Millisecond)
}

// watchfulSchedule returns when to renew a key that is retained, or that readers may join. The renewal
// also detects clients that could not notify us. Such a key is therefore renewed as often as with the
// default TTL, however long its own TTL is. Other keys are not.
func watchfulSchedule(ttl time.Duration, lane int) schedule {
	return schedule{ttl: min(ttl, store.DefaultTTL), lane: lane}
}
