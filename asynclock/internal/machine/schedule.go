// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

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
