// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/watchdog"
)

// mostOverdue is how many late renewals stay under way in one lane. Up to this number of attempts a
// slow store is waited for. A store that hangs has no more of them.
const mostOverdue = 8

// overdueRenewals counts the calls that renew, and in each lane those that took longer than their
// timeout and are still under way.
type overdueRenewals struct {
	flying sync.WaitGroup

	mu   sync.Mutex
	late map[int]int // by lane
}

// enter counts a late call of the lane. It reports false if there are too many.
func (o *overdueRenewals) enter(lane int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.late[lane] >= mostOverdue {
		return false
	}
	if o.late == nil {
		o.late = make(map[int]int)
	}
	o.late[lane]++
	return true
}

// leave is called when a late call has been answered.
func (o *overdueRenewals) leave(lane int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.late[lane]--; o.late[lane] == 0 {
		delete(o.late, lane)
	}
}

// tripsInTTL is how many round trips a TTL must have room for. A lease is renewed a third of the TTL
// after it was extended, and trusted for little less than nine tenths. That leaves more than half
// of the TTL for the answer, of which the rest is for a failed attempt.
const tripsInTTL = 5

// Round trips that are too long are reported after so many in a row, and then so often at most.
const (
	longTrips      = 3
	longTripsAgain = time.Hour
)

// A tripMeter notices that the store is too far away, or too slow, for the TTL.
type tripMeter struct {
	row      atomic.Int32 // too long, in a row
	last     atomic.Int64 // when the last one began: a batch counts once
	reported atomic.Int64 // when; 0: never
}

// measured notes a round trip that has ended.
func (m *tripMeter) measured(sent, now watchdog.Instant, ttl time.Duration, log *asynclog.Log) {
	trip := now.Sub(sent)
	if trip <= ttl/tripsInTTL {
		if m.row.Load() != 0 {
			m.row.Store(0)
		}
		return
	}
	if m.last.Swap(int64(sent)) == int64(sent) || m.row.Add(1) < longTrips {
		return
	}
	last := m.reported.Load()
	if last != 0 && now.Sub(watchdog.Instant(last)) < longTripsAgain || !m.reported.CompareAndSwap(last, int64(now)) {
		return
	}
	log.Add(slog.LevelWarn, "the store's answers take too long for this TTL: leases may be lost",
		slog.Duration("round_trip", trip), slog.Duration("ttl", ttl))
}
