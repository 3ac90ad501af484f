// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/internal/clock"
)

// A Schedule says when a lease of one TTL is renewed.
//
// With a TTL of 15 s and the trust deadline at 13.3 s, the first renewal is due
// at about 5 s; until the deadline there is time for seven attempts that all hang, or
// some twenty that fail at once.
type Schedule struct {
	// TTL is what each renewal sets.
	TTL time.Duration
	// Lane is the number of what can be renewed together; leases of other lanes are
	// renewed by other calls anyway, and had better be due at other times.
	Lane int
}

// RenewAt returns when a lease last extended at sent is to be renewed: after a
// third of the TTL. Times are gathered on a grid of a fifteenth of the TTL, so
// that leases taken one by one are renewed in batches. (It costs nothing but the
// first renewal's being early: a third is five fifteenths.) Each of 256 lanes has a
// grid that is shifted a little, so that they don't all come to the server at once.
func (s Schedule) RenewAt(sent clock.Instant) clock.Instant {
	grid := clock.Instant(max(s.TTL/15, time.Millisecond))
	at := sent.Add(s.TTL / 3)
	return at - (at+grid/256*clock.Instant(s.Lane%256))%grid
}

// RetryIn returns how long to wait after so many failures in a row: 50 ms
// doubled each time, at most a thirtieth of the TTL, with jitter of a fifth.
func (s Schedule) RetryIn(failures int) time.Duration {
	wait := 50 * time.Millisecond << min(max(failures-1, 0), 10)
	return Jitter(max(min(wait, s.TTL/30), time.Millisecond))
}

// Timeout returns how long one renewal may take when the lease is trusted for
// remaining more and so many attempts in a row have failed: a second, doubled
// with each failure, because a server that is merely slow has the earlier ones
// in its queue still; at most a quarter of remaining, so that several attempts
// fit however each one fails.
func (s Schedule) Timeout(remaining time.Duration, failures int) time.Duration {
	return max(min(remaining/4, time.Second<<min(max(failures, 0), 10)), 5*time.Millisecond)
}

// Jitter returns d changed at random by up to a fifth, either way, so that what
// started together does not stay together.
func Jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}
