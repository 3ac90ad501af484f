// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// A schedule says when a lease of one TTL is renewed.
//
// With a TTL of 15 s and the trust deadline at 13.3 s, the first renewal is due
// at about 5 s; until the deadline there is time for seven attempts that all hang, or
// some twenty that fail at once.
type schedule struct {
	// ttl is what each renewal sets.
	ttl time.Duration
	// lane is the number of what can be renewed together; leases of other lanes are
	// renewed by other calls anyway, and had better be due at other times.
	lane int
}

// renewAt returns when a lease last extended at sent is to be renewed: after a
// third of the TTL. Times are gathered on a grid of a fifteenth of the TTL, so
// that leases taken one by one are renewed in batches. (It costs nothing but the
// first renewal's being early: a third is five fifteenths.) Each of 256 lanes has a
// grid that is shifted a little, so that they don't all come to the server at once.
func (s schedule) renewAt(sent watchdog.Instant) watchdog.Instant {
	grid := watchdog.Instant(max(s.ttl/15, time.Millisecond))
	at := sent.Add(s.ttl / 3)
	return at - (at+grid/256*watchdog.Instant(s.lane%256))%grid
}

// retryIn returns how long to wait after so many failures in a row: 50 ms
// doubled each time, at most a thirtieth of the TTL, with jitter of a fifth.
func (s schedule) retryIn(failures int) time.Duration {
	wait := 50 * time.Millisecond << min(max(failures-1, 0), 10)
	return jitter(max(min(wait, s.ttl/30), time.Millisecond))
}

// timeout returns how long one renewal may take when the lease is trusted for
// remaining more and so many attempts in a row have failed: a second, doubled
// with each failure, because a server that is merely slow has the earlier ones
// in its queue still; at most a quarter of remaining, so that several attempts
// fit however each one fails.
func (s schedule) timeout(remaining time.Duration, failures int) time.Duration {
	return max(min(remaining/4, time.Second<<min(max(failures, 0), 10)), 5*time.Millisecond)
}
