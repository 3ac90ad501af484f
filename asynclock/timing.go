// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"math/bits"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/watchdog"
)

// How the client's times follow from the TTL. docs/design.md derives them.

// trustUntil is the trust deadline of a lease whose TTL the store set at some
// moment after sent. Counting from before the request, never from its reply,
// makes it earlier than the store's own deadline however slow the network was.
// A hundredth of the TTL allows for clocks that run at different rates, 5 ms
// for the store's resolution, and a tenth for whoever has to stop working when
// the lease's context ends.
func trustUntil(sent watchdog.Instant, ttl time.Duration) watchdog.Instant {
	return sent.Add(ttl - ttl/100 - 5*time.Millisecond - ttl/10)
}

// ttlThatCounts is the TTL of a holding that the store may have promised for less
// than was asked.
func ttlThatCounts(asked, promised time.Duration) time.Duration {
	if promised > 0 {
		return min(asked, promised)
	}
	return asked
}

// heartbeat is how often a waiter asks again, whatever it has or has not been
// told. It bounds what a lost message costs, so it does not grow with a long
// TTL.
func heartbeat(ttl time.Duration) time.Duration { return min(ttl/10, 3*time.Second) }

// grantTTL is how long a granted key stays with a waiter that has not been
// heard from since, and also for how long a silent waiter keeps its place. It
// is more than two heartbeats, so one lost message costs nothing but time.
func grantTTL(ttl time.Duration) time.Duration { return 3 * heartbeat(ttl) }

// tooLate reports that a grant with this much trust left is not worth handing
// out before the store has confirmed it.
func tooLate(left, ttl time.Duration) bool { return left < ttl/5 }

// callTimeout bounds one call to the store on behalf of a waiter.
func callTimeout(ttl time.Duration) time.Duration {
	return min(max(ttl/4, 50*time.Millisecond), time.Second)
}

// secondTry is how long TryLock gives a holder, which may only retain the key, to
// give it back: it hears of that and answers in as much time as we do, if it is as
// far from the store.
func secondTry(answered, limit time.Duration) time.Duration {
	return min(max(2*answered, 5*time.Millisecond), limit)
}

// jitter returns d changed at random by up to a fifth, either way.
func jitter(d time.Duration) time.Duration { return backoff.Jitter(d, 0.2) }

// patience is how long a waiter puts up with a store that fails every call
// before it tells its caller.
func patience(ttl time.Duration) time.Duration {
	return min(max(ttl/3, time.Second), 10*time.Second)
}

// holdTTL is the TTL to ask for when the key will be needed for at most bound: just
// enough that trust lasts to the bound, so that the store frees the key soon after.
func holdTTL(ttl, bound time.Duration) time.Duration {
	return min(ttl, max(bound+bound/5+10*time.Millisecond, MinTTL))
}

// laneFor divides a lane of the store by how long a call may take, so that a call
// that must be quick does not cut short others that it shares a batch with.
func laneFor(lane int, timeout time.Duration) int {
	return lane*timeoutClasses + timeoutClass(timeout)
}

// timeoutClasses: less than 5 ms, and so on in powers of two up to 5 s and more.
const timeoutClasses = 12

func timeoutClass(timeout time.Duration) int {
	return min(bits.Len64(uint64(timeout/(5*time.Millisecond))), timeoutClasses-1)
}

// retryIn is how long to wait after so many failed calls in a row.
func retryIn(failures int, ttl time.Duration) time.Duration {
	return schedule{ttl: ttl}.retryIn(failures)
}
