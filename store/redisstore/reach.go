// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// reaches are the longest TTLs that this process has told the epochs of the buckets lately, by renew.lua. An epoch
// remembers a TTL for a day at least. So a renewal has to tell it now and then, not each time.
type reaches struct {
	mu sync.Mutex
	of [buckets]reach
}

type reach struct {
	ttl   time.Duration
	until time.Time
}

// toldFor is how long a TTL counts as told. It is far less than an epoch remembers, and far more than a third of a usual TTL.
const toldFor = time.Minute

// longestTold is the longest TTL that an epoch remembers until it is told again.
const longestTold = store.MaxTTL - toldFor

// told reports whether the epoch knows the TTL of a renewal.
func (r *reaches) told(q *store.RenewRequest, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := &r.of[bucketOf(q.Key)]
	// A machine that sleeps may stop one of the two clocks of a time.
	return q.TTL <= min(known.ttl, longestTold) && now.Before(known.until) && now.Round(0).Before(known.until.Round(0))
}

// tell notes that the epoch was told the TTL of a renewal that was sent at this time.
func (r *reaches) tell(q *store.RenewRequest, sent time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := &r.of[bucketOf(q.Key)]; q.TTL >= known.ttl || sent.After(known.until) {
		*known = reach{q.TTL, sent.Add(toldFor)}
	}
}
