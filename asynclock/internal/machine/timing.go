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
